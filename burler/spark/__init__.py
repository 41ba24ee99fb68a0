"""Spark behind a lake: sessions, types, and tables made from raw Singer messages (extra ``spark``).

What to open for what:

    session, launch, jvm, java   the session, its confs; starting a JVM; finding Java
    archive, training            its start made fast
    remote, sail, confs          what an engine can do, Spark Connect; Sail; confs for one export
    types, columns, variants     types; columns and names of burler's own; VARIANT
    united, unite_names, refit   all schema versions as one set of columns
    lakefiles, file_facts, batches_in  which files; what is known of them; BATCH messages in place of a lake
    export, export_*, under_way  from lake to tables; its options, bad rows, staging; how far it is
    plan, plan_*                 what is to be done for one stream
    readrows, readoptions, scan, exact, spread  rows of files: the whole; options; Spark's reader; ours; on executors
    quarantine                   rows that no table can hold
    rows, small                  the latest row of each key: in Spark; in Arrow
    formats/, table, owner       tables of each format; reading one; who works in a folder
    source/, lakesource/         ``format("burler")``, ``format("singerlake")``
    streaming/, pipelines/       the same as streams; projects for declarative pipelines
    extraction/, land            a tap's partitions as Spark tasks; a tap to tables in one call

Importing this package loads no pyspark; the names below are found when they are first used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.spark.export import export
    from burler.spark.export_run import StreamResult
    from burler.spark.extraction import extract
    from burler.spark.java import Java, find_java
    from burler.spark.land import Landed, land
    from burler.spark.remote import Capabilities, capabilities
    from burler.spark.session import session
    from burler.spark.source import read, reference
    from burler.spark.streaming.upsert import upsert
    from burler.spark.table import table
    from burler.spark.types import arrow_schema, record_type, spark_schema

_HOME = {
    "Capabilities": "remote",
    "Java": "java",
    "Landed": "land",
    "StreamResult": "export_run",
    "arrow_schema": "types",
    "capabilities": "remote",
    "export": "export",
    "extract": "extraction",
    "find_java": "java",
    "land": "land",
    "read": "source",
    "record_type": "types",
    "reference": "source",
    "session": "session",
    "spark_schema": "types",
    "table": "table",
    "upsert": "streaming.upsert",
}

__all__ = [
    "Capabilities",
    "Java",
    "Landed",
    "StreamResult",
    "arrow_schema",
    "capabilities",
    "export",
    "extract",
    "find_java",
    "land",
    "read",
    "record_type",
    "reference",
    "session",
    "spark_schema",
    "table",
    "upsert",
]


if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(__name__, _HOME)


class _Package(ModuleType):
    """Keeps ``burler.spark.export`` (and land, session, table) the function, whatever is imported when.

    Python binds each imported submodule to its package; some of ours are named like what they offer.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOME:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
