"""All 2^32 inputs of fp32: spans of patterns, the measuring pass, and the census it gives."""
