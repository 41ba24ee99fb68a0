"""One export in a process of its own, and what is held in memory when it ends.

Run as: export_once.py LAKE OUT HEAP REPORT. HEAP is the JVM's ``-Xmx``. The report is JSON: ``heap``, the bytes in the
JVM's heap that are alive behind a garbage collection, and ``python``, the peak of the driver's Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(lake: str, out: str, heap: str, report: str) -> None:
    """Export, then look."""
    from burler import spark

    session = spark.session("bench", {"spark.driver.memory": heap})
    spark.export(session, lake, out)
    java = session._jvm.java.lang  # type: ignore[attr-defined]  # classic, as this process has started it
    for _ in range(2):
        java.System.gc()
    alive = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    told = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    Path(report).write_text(json.dumps({"heap": alive, "python": int(told) * 1024}))
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
