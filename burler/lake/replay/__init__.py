"""A lake as a tap (``burler lake read``): ``streams`` (which there are, which of them, and what of each; the catalog),
``replay`` (what was given before; the messages).
"""
