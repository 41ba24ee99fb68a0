"""Arrow arrays: their values as JSON text, as Python's own, as columns of files.

json_text  JSON text, a column at a time; exact, or ``Unsure``
walk       down to the scalars, by plans: which type goes which way, as text and as a column; types in their plain form
pages      a stream's pages: plans by its schema; lines, or columns of batch files
to_rows    rows of Python values that lose nothing; JSON in a column of text
"""
