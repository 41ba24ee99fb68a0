"""What a new tap's README and its plugin definition say of it: the same as ``--about``, asked of the tap itself."""

from __future__ import annotations

import importlib.util
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from burler.cli import about as said
from burler.cli.delivery import delivery
from burler.declare.app import App
from burler.scaffold.kinds import Kind
from burler.singer.metadata import INCREMENTAL


def fill(readme: str, package: Path, kind: Kind) -> str:
    """A README with its places filled.

    Args:
        readme: the text, with ``{{config}}``, ``{{streams}}`` and ``{{delivery}}`` in it.
        package: the folder of the generated package; it is imported, under a name that nobody else has.
    """
    with _loaded(package) as app:
        facts = said.about(app)
        rows = said.config_rows(facts["settings"], app.name)
        own = [row for row in rows if row["key"] not in facts["burler_settings"]]
        promises = said.delivery_section(facts["streams"]) if kind.chosen is None else _of_tables(app, kind.chosen)
        words = {
            "{{config}}": said.config_table(own),
            "{{streams}}": said.streams_table(facts["streams"]),
            "{{delivery}}": promises,
        }
    for word, meant in words.items():
        readme = readme.replace(word, meant)
    return readme


def plugin(package: Path) -> str:
    """The definition of the tap as a plugin of Meltano: what ``--about=meltano`` says.

    Args:
        package: as for :func:`fill`.
    """
    with _loaded(package) as app:
        return said.render(said.about(app), "meltano")


def _of_tables(app: App, key: str) -> str:
    """The promises of streams that are found, whose replication key the user chooses."""
    spec = app.streams["*"]
    first = "id" if spec.resumable_by else None  # a pattern's "*" is the first field of the key
    table = replace(spec, tap_stream_id="table", key_properties=("id",), resumable_by=first)
    followed = replace(table, replication_method=INCREMENTAL, replication_key=key, resumable_by=None)
    parts = {
        "A full table with the primary key `id`": delivery(table),
        f"The same table with the replication key `{key}`": delivery(followed),
    }
    return "\n\n".join(
        f"### {title}\n\n" + "\n".join(f"- {sentence}" for sentence in part) for title, part in parts.items()
    )


@contextmanager
def _loaded(package: Path) -> Iterator[App]:
    """The tap of a package, without a trace in ``sys.modules`` or on the disk."""
    name = f"_burler_new_{secrets.token_hex(6)}"
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module.tap.seal()
    finally:
        sys.dont_write_bytecode = no_bytecode
        for known in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[known]
