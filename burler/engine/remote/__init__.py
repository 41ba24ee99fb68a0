"""Partitions of a tap that run elsewhere: in other processes, on other machines, in tasks of Spark.

::

    ref = AppRef.of(tap)                                   # on the driver; it can be pickled (burler.appref)
    planning = Planning(tap.seal(), config, state=state)
    parts = planning.parts("tickets")
    end = run_part(ref.load(), part, config=config, state=part.state_for(state), sink=sink)   # anywhere
    merge = Merge(planning.state)                          # on the driver
    merge.add(end)                                         # of each part; then merge.finish("tickets"), merge.state

Each part is a run of the same engine (pull, shape, bookmark) with one task. What comes of it is plain data; put
together, the ends say what one local run of all partitions would have written into its last STATE. A full table has one
version, chosen when its parts are found; it counts once all of them are whole (``Merge.finish``).
"""

from __future__ import annotations

from burler.engine.remote.parts import Part, PartEnd, PartError, as_errors
from burler.engine.remote.planning import Merge, Planning
from burler.engine.remote.running import run_part

__all__ = ["Merge", "Part", "PartEnd", "PartError", "Planning", "as_errors", "run_part"]
