"""Arrow arrays: their values as JSON text, as Python's own, as columns of files.

kernels    JSON text, a column at a time; exact, or ``Unsure``
types      which kernel writes an Arrow type; types in their plain form
values     Python values that lose nothing
plan       how a column goes under a node of a schema
lines      pages to RECORD lines; ``limits``: constraints
columns    pages as columns of batch files; ``scalars``
"""
