"""Long runs: shards, the ledger that keeps finished ones, and the executors that run them."""
