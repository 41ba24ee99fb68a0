"""Where the inner modules of burler are that tests reach. No other file of the tests imports one (test_doors.py).

    from support.internals import shape

    monkeypatch.setattr(shape, "MOST_BYTES", 10)

A name is a module, imported when it is first asked for: a test pays only for what it uses. Where a module moves, its
line here changes, and no test. The list only shrinks: a new test uses public names, the command line, or
``burler.testing``.
"""

from __future__ import annotations

import importlib
from types import ModuleType

MODULES = {
    "config_watched": "burler.config.watched",
    "columnar": "burler.batch.columnar",
    "batch_storage": "burler.batch.storage",
    "batch_config": "burler.batch_config",
    "cli_main": "burler.cli.main",
    "cli_process": "burler.cli.process",
    "column_kinds": "burler.columns.kinds",
    "column_values": "burler.columns.values",
    "canaries": "burler.config.canaries",
    "context": "burler.context",
    "canonical": "burler.lake.canonical",
    "layout": "burler.lake.layout",
    "lake_locks": "burler.lake.locking.locks",
    "manifest": "burler.lake.manifests.manifest",
    "lake_pace": "burler.lake.pace",
    "lake_store": "burler.lake.store",
    "azure_store": "burler.lake.stores.azure",
    "gcs_store": "burler.lake.stores.gcs",
    "s3_store": "burler.lake.stores.s3",
    "log_settings": "burler.log_settings",
    "bookmark": "burler.pipeline.bookmark",
    "repeats": "burler.pipeline.repeats",
    "shape": "burler.pipeline.shape",
    "regex": "burler.regex",
    "runtime_away": "burler.runtime.away",
    "confirmed": "burler.runtime.confirmed",
    "logs": "burler.runtime.logs",
    "run_report": "burler.runtime.report",
    "report_frame": "burler.runtime.report_frame",
    "runtime_run": "burler.runtime.run",
    "signals": "burler.runtime.signals",
    "tail_watch": "burler.runtime.tail_watch",
    "documents": "burler.schema.documents",
    "settings": "burler.settings",
    "memory_sink": "burler.sinks.memory",
    "soap_reading": "burler.soap.reading",
    "spark_archive": "burler.spark.archive",
    "export_options": "burler.spark.export_options",
    "formats_base": "burler.spark.formats.base",
    "opening": "burler.spark.formats.opening",
    "spark_source": "burler.spark.source",
    "sql_ahead": "burler.sql.ahead",
    "sql_failures": "burler.sql.failures",
    "json_types": "burler.sql.json_types",
    "sql_other": "burler.sql.other",
    "sql_postgres": "burler.sql.postgres",
    "postgres_links": "burler.sql.postgres_links",
    "sql_reading": "burler.sql.reading",
    "behaviour": "burler.verify.behaviour",
    "verify_proxy": "burler.verify.proxy",
    "verify_report": "burler.verify.report",
}


def __getattr__(name: str) -> ModuleType:
    if name not in MODULES:
        raise AttributeError(f"tests/support/internals.py has no {name!r}")
    return importlib.import_module(MODULES[name])


def __dir__() -> list[str]:
    return sorted(MODULES)
