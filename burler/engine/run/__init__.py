"""One run of a tap.

What to open for what:

    run                                one run, from config and state to the last STATE
    sync, stream, line, worker, task   from the first stream to the last STATE (docs/concepts.md, Words)
    calls, writing, channel            what functions get as ``stream``; what becomes of a page; what functions emit
    pace, page_size                    limits and STATEs that are due; rows in a page
    partitions                         which there are, as the author's function says
    failures, signals, guarded, workers  what is missing, further tries; SIGTERM, SIGINT, SIGHUP; threads
"""
