"""The CI gate: run what is configured, hold it to its contracts and to its baselines."""
