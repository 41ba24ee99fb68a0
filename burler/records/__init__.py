"""Rows and what is made of them.

columns    JSON to typed columns and back
arrow      Arrow arrays as JSON text and as Python values
"""
