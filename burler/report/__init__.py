"""What a run did, for those who look at it.

What to open for what:

    report, rows, values, series   the report, as JSON
    text, frame, line              as a table in the log, on a terminal
    page, parts, counts, plot, ticks, style   as a page
    watch, views                   a tail while it runs
    unknown                        fields that no schema knows
"""
