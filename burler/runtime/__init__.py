"""The runtime: the plan of a run, discovery, the sync loop, signals, logs.

What to open for what:

    run, session, apps, clients  one run; what its streams share; finding the tap; its client
    discovery, metadata, schema_check  the catalog, as the tap says it
    overrides, plan              what a user's catalog changes; which streams, in which order
    sync, stream, line, worker, task   from the first stream to the last STATE (docs/concepts.md, Words)
    writing, outlet, outlet_files, other_pages  one page on its way into the sink
    pace, page_size, timer       limits and STATEs that are due; rows in a page; while user code blocks
    states, tracking, unread     when a STATE comes; bookmarks; what burler does not read
    partitions, partition_source  partitions: their tasks, where they come from
    channel, unseen              what functions emit and ask for; a parent that nobody selected
    versions                     versions of full tables
    retries, failures, signals   further tries; what is missing; SIGTERM, SIGINT, SIGHUP
    tail, tail_*, kept, comparing  rounds of a tail
    acknowledging, confirmed, said, sources  telling sources what is out; a target's state file; source states
    logs, ending, removed, report, report_*  the log; the end of a stream; dropped fields; reports
    away/                        a partition elsewhere
"""
