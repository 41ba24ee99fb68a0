"""One run of a tap.

What to open for what:

    run                                one run, from config and state to the last STATE
    engine, job                        what all streams share; what those of one family share
    sync, worker, task                 who drives them, from the first stream to the last STATE (docs/concepts.md)
    calls, writing, channel            what functions get as ``stream``; what becomes of a page; what functions emit
    partitions                         which there are, as the author's function says
    failures, stop, signals, workers   what is missing, further tries; SIGTERM, SIGINT, SIGHUP; threads
"""
