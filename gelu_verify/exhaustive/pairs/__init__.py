"""All 2^32 pairs of two 16-bit arguments: exact values, measuring passes on CPU and GPU."""
