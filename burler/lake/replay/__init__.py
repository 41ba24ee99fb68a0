"""A lake as a tap (``burler lake read``): ``plan`` (which streams and files), ``catalog``, ``state`` (what was given
before), ``replay`` (the messages).
"""
