"""Columns for Singer rows: which type a field has in a table or a file with columns, and the exact value in it.

    types        the types as plain data: those of a JSON Schema; how two become one; Arrow's
    converters   JSON source text to the value that a column holds; never rounded, an error instead
    file_check   what a schema asks of a file's columns
    csv          the columns of CSV for a schema; JSON lines to the text of their rows, and back
    from_json    JSON lines to record batches, a column at a time
    to_json      record batches to JSON lines
    from_rows    rows to record batches, shaped ones or dicts that need no shaping

Spark's tables and BATCH files in Parquet or Arrow are made by the same rules.
"""
