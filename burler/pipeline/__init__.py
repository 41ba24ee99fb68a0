"""The pipeline: pull, bookmark. It neither prints nor reads clocks or files of its own. (Shaping: ``records``.)

What to open for what:

    pull, yielded       driving user code; what it yields
    bookmark, lookback  which value a STATE may carry; beginning before it (how values are ordered:
                        ``burler.singer.bookmark_values``)
    repeats             rows that a round of a tail brings again
"""
