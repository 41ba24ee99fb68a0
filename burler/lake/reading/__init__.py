"""Rows of one stream: ``pages`` (what ``burler.lake.read`` gives), ``choice`` (which versions and times), ``lines``
(the lines of a file that match, whole or some of their fields), ``arrow``.
"""
