"""The pipeline: pull, shape, bookmark. It neither prints nor reads clocks or files of its own."""
