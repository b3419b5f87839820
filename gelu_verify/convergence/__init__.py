"""Does training still work: runs with the kernel against runs with the exact operator, paired."""
