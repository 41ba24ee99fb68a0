"""What a run did, and does: those who listen to what it tells (``burler.events``).

What to open for what:

    stats                 hears it, and counts; asked by all that show it
    report                the report, as JSON
    text                  as a table in the log, or on a terminal while a tail goes on
    page                  as a page
    log                   log lines and METRIC lines
"""
