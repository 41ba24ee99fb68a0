"""Where messages go: stdout, memory, a lake."""
