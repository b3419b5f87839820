"""Where to look: sweeps over bit patterns, special values, memory layouts."""
