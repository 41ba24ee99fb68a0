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
    "config_secrets": "burler.config.secrets",
    "from_json": "burler.records.columns.from_json",
    "batch_storage": "burler.batch.storage",
    "batch_config": "burler.batch_config",
    "cli_process": "burler.cli.process",
    "hashing": "burler.lake.hashing",
    "layout": "burler.lake.layout",
    "lake_locks": "burler.lake.locks",
    "manifest": "burler.lake.manifest",
    "clocks": "burler.clock",
    "lake_store": "burler.storage.base",
    "log_settings": "burler.log_settings",
    "bookmark": "burler.pipeline.bookmark",
    "shape": "burler.records.shape.shaper",
    "runtime_away": "burler.engine.remote",
    "signals": "burler.engine.run.signals",
    "documents": "burler.schema.documents",
    "settings": "burler.settings",
    "export_options": "burler.spark.export_options",
    "formats_base": "burler.spark.formats.base",
    "opening": "burler.spark.formats.opening",
}


def __getattr__(name: str) -> ModuleType:
    if name not in MODULES:
        raise AttributeError(f"tests/support/internals.py has no {name!r}")
    return importlib.import_module(MODULES[name])


def __dir__() -> list[str]:
    return sorted(MODULES)
