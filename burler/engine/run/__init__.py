"""One run of a tap.

What to open for what:

    run                                one run, from config and state to the last STATE
    sync, stream, line, worker, task   from the first stream to the last STATE (docs/concepts.md, Words)
    writing, channel, stream_runs      what becomes of a page; what functions emit; what they get as ``stream``
    pace, page_size, timer             limits and STATEs that are due; rows in a page; while user code blocks
    partitions, partition_source       partitions: their tasks, where they come from
    retries, failures, signals, guarded, workers  further tries; what is missing; SIGTERM, SIGINT, SIGHUP; threads
"""
