"""Rows to RECORD lines: selected fields, typed, lossless.

shaper, lines          pages of rows to lines
form                   the schema as shaping works on it
compile, types, tree   the fast path: a msgspec type, and what is looked at beside it
fixes, raw             a column at a time; leaves of pages of bytes
json_pages             pages of bytes
exact, values          one row at a time: the reference; single values
constraints            bounds, lengths, patterns, choices
rules, bad_rows        what is done with rows that do not fit; their error and count
unknown, unknown_values  fields that no schema knows
proof                  what rows are known to hold
"""
