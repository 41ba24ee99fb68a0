"""Structured Streaming over lakes and taps, and what makes a sink of a stream exactly right.

``lakestream``: ``readStream.format("singerlake")``; ``appstream``: ``readStream.format("burler")``; ``upsert``: what
``foreachBatch`` is given.
"""

from __future__ import annotations
