"""A run that goes on for ever.

What to open for what:

    schedule    what is read and when: sources, intervals, what follows from how a round went, how a SIGHUP waits
    tail        one client's time: threads that poll, push and listen; the next one at a SIGHUP; discovery meanwhile
"""
