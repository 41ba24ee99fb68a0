"""Where messages go: stdout, memory, a lake.

What to open for what:

    base            what a sink is
    open            ``--sink``: from its text to a sink; when files of a lake roll
    stdout, memory  lines on stdout; a list for tests
    lake, batch     into a lake; rows into batch files, all else goes on
    touched         STATEs that carry only what has changed
"""
