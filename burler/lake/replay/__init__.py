"""A lake as a tap (``burler lake read``): ``finding`` (which streams there are), ``plan`` (which of them, and what of
each), ``catalog``, ``state`` (what was given before), ``replay`` (the messages).
"""
