"""The pipeline: pull, shape, bookmark. It neither prints nor reads clocks or files of its own.

What to open for what:

    pull, yielded, describing    driving user code; what it yields; that in words
    shape, shape_fast, shape_exact  rows to RECORD lines; the fast path; the slow one, its reference
    shape_schema, shape_tree, shape_types  the schema as shaping works on it
    shape_columns, shape_values, times  a column at a time; single values; date-times
    constraints                     bounds, lengths, patterns, choices
    shape_lines, shape_json, shape_raw  lines of converted rows; pages of bytes
    rules, shape_bad                what is done with rows that do not fit; their error and count
    unknown, unknown_values         fields that no schema knows
    arrow_lines, arrow_*            Arrow to lines: ``arrow_plan`` says which column goes how
    arrow_direct, dicts_direct, rows_direct, rows_columns  pages as columns of batch files
    vouching                        what rows are known to hold
    bookmark, bookmark_*, lookback  which value a STATE may carry; how values are ordered; beginning before it
    repeats                         rows that a round of a tail brings again
"""
