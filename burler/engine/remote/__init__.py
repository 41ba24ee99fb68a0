"""Partitions of a tap that run elsewhere: in other processes, on other machines, in tasks of Spark.

::

    ref = AppRef.of(tap)                                   # on the driver; it can be pickled (burler.declare.appref)
    app = tap.seal()
    parts = parts_of(app, "tickets", config=config, state=state)
    end = run_part(ref.load(), part, config=config, state=state, sink=sink)   # anywhere
    state = merge_states(state, ends)                      # on the driver

Each part is one run of the same engine (pull, shape, bookmark), restricted to its partition. What comes of it is plain
data; put together, the ends say what one local run of all partitions would have written into its last STATE. A full
table has one version, chosen when its parts are found; it counts once all of them are whole (``Merge.finish``).
"""

from __future__ import annotations

from burler.engine.remote.ends import PartEnd, PartError
from burler.engine.remote.merging import Merge, merge_states
from burler.engine.remote.parts import Part, Shared, Table
from burler.engine.remote.planning import Planning, parts_of
from burler.engine.remote.running import run_part

__all__ = [
    "Merge",
    "Part",
    "PartEnd",
    "PartError",
    "Planning",
    "Shared",
    "Table",
    "merge_states",
    "parts_of",
    "run_part",
]
