"""The pipeline: pull, bookmark. It neither prints nor reads clocks or files of its own. (Shaping: ``records``.)

What to open for what:

    pull, yielded                   driving user code; what it yields
    bookmark, bookmark_*, lookback  which value a STATE may carry; how values are ordered; beginning before it
    repeats                         rows that a round of a tail brings again
"""
