"""Rows to RECORD lines: selected fields, typed, lossless.

shaper                   pages of rows, or of bytes, to lines
form                     the schema as shaping works on it
compile                  the fast path: a msgspec type, and what is looked at beside it
leaves                   that, a column at a time
exact, values            one row at a time: the reference; single values
constraints              bounds, lengths, patterns, choices
bad_rows                 what is done with rows that do not fit; their error and count
unknown                  fields that no schema knows
proof                    what rows are known to hold
"""
