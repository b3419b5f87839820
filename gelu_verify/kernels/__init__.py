"""What is under test: the record, loading by name, the registry, isolation in a child process."""
