"""Where messages go: stdout, memory, a lake.

What to open for what:

    base     what a sink is, and one that stands before another
    open     ``--sink``: from its text to a sink; the sink of a lake, when its files roll
    stdout   lines on stdout; STATEs that carry only what has changed
    batch    rows into batch files, all else goes on
    memory   a list for tests
"""
