"""Structured Streaming over lakes and taps, and what makes a sink of a stream exactly right.

``lakestream``: ``readStream.format("singerlake")``; ``appstream``: ``readStream.format("burler")``; ``follower``: the
reader of Spark's that both have; ``upsert``: what ``foreachBatch`` is given.
"""

from __future__ import annotations
