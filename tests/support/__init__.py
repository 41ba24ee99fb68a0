"""What tests share, found as ``support``: ``tests`` is on the path, of processes that tests start, too."""
