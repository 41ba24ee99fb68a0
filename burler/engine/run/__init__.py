"""One run of a tap.

What to open for what:

    start                     from config and state to a plan, and to the last STATE
    run, job                  what all streams share; what those of one family share
    sync, worker, task        who drives them, from the first stream to the last STATE (docs/concepts.md)
    calls, outbox             what functions get as ``stream``; what becomes of what they give, and say of their streams
    partitions                which there are, as the author's function says
    failures, signals         what is missing, further tries; what is to end, and why: SIGTERM, SIGINT, SIGHUP
"""
