"""Rows and what is made of them.

shape      rows to RECORD lines: typed, lossless, a page at a time
columns    JSON and rows to typed columns, and back
arrow      Arrow arrays as JSON text, as Python values, as columns of files
tries      when a fast way is given up
"""
