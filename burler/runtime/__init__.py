"""The runtime: the plan of a run, discovery, the sync loop, signals, logs."""
