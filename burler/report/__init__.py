"""What a run did, and does: those who listen to what it tells (``burler.events``).

What to open for what:

    stats                 hears it, and counts; asked by all that show it
    report, values        the report, as JSON
    text, frame           as a table in the log, on a terminal while a tail goes on
    page, plot            as a page
    log, unknown          log lines and METRIC lines; fields that no schema knows
"""
