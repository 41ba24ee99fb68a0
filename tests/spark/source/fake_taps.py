"""Singer taps as anybody might have written them, as programs of their own: well-behaved ones and broken ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"type": ["null", "number"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "anything": {},
    },
}
_PROGRAM = """\
import argparse, json, os, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = {flags!r}
parser = argparse.ArgumentParser()
for flag in ("--config", "--state", *FLAGS):
    parser.add_argument(flag)
parser.add_argument("--discover", action="store_true")
args = parser.parse_args()


def said(name):
    path = getattr(args, name.lstrip("-"), None)
    return json.load(open(path)) if path else None


CONFIG, STATE = said("--config"), said("--state")
GIVEN = [said(flag) for flag in FLAGS]
if args.discover:
    print(json.dumps({catalog!r}, indent=2))
    sys.exit({discover_code!r})
with open(os.path.join(HERE, "asked.json"), "w") as note:
    modes = [oct(os.stat(sys.argv[n + 1]).st_mode & 0o777) for n, word in enumerate(sys.argv) if word.startswith("--")]
    plain = {{name: value for name, value in (CONFIG or {{}}).items() if name != "password"}}
    json.dump({{"config": plain, "state": STATE, "catalogs": GIVEN, "modes": modes, "argv": sys.argv[1:],
               "pid": os.getpid()}}, note)


def write(**message):
    print(json.dumps(message), flush=True)


def schema(stream="users", schema={schema!r}):
    write(type="SCHEMA", stream=stream, schema=schema, key_properties=["id"])


def record(stream="users", **row):
    write(type="RECORD", stream=stream, record=row)


{body}
"""
GOOD = """\
schema("others")
record("others", id=1)
schema()
for n in range(CONFIG.get("rows", 5) if CONFIG else 5):
    record(id=n, name="n%d" % n, price=n / 4, at="2024-05-01T00:00:00.25Z", anything=[n] if n % 2 else "text")
write(type="STATE", value={"bookmarks": {"users": {"id": 4}}, "was": STATE})
"""


def entry(stream: str = "users", schema: dict[str, Any] = SCHEMA, **more: Any) -> dict[str, Any]:
    """A stream of a catalog."""
    metadata = [
        {"breadcrumb": [], "metadata": {"inclusion": "available", "table-key-properties": ["id"]}},
        *(
            {
                "breadcrumb": ["properties", name],
                "metadata": {"inclusion": "automatic" if name == "id" else "available"},
            }
            for name in schema["properties"]
        ),
    ]
    return {"tap_stream_id": stream, "stream": stream, "schema": schema, "metadata": metadata, **more}


CATALOG = {"streams": [entry("others"), entry(replication_method="FULL_TABLE", row_count=5)], "made_by": "somebody"}


def write_tap(
    folder: Path,
    body: str = GOOD,
    *,
    flags: tuple[str, ...] = ("--catalog",),
    catalog: Any = CATALOG,
    schema: Any = SCHEMA,
    discover_code: int = 0,
) -> str:
    """A tap in a folder; the command that runs it."""
    path = folder / "tap_fake.py"
    path.write_text(
        _PROGRAM.format(body=body, flags=flags, catalog=catalog, schema=schema, discover_code=discover_code)
    )
    return f"{sys.executable} {path}"


def asked(folder: Path) -> dict[str, Any]:
    """What the tap was given when it ran last."""
    found: dict[str, Any] = json.loads((folder / "asked.json").read_text())
    return found
