"""Arrow arrays: their values as JSON text and as Python's own.

kernels    JSON text, a column at a time; exact, or ``Unsure``
types      which kernel writes an Arrow type; types in their plain form
values     Python values that lose nothing
"""
