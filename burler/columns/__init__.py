"""Columns for Singer rows: which type a field has in a table or a file with columns, and the exact value in it.

    kinds      the types as plain data, and how two become one
    types      JSON Schema -> types; types -> Arrow
    values     JSON source text -> the value that a column holds; never rounded, an error instead

Spark's tables and BATCH files in Parquet or Arrow are made by the same rules.
"""
