"""Broken taps on the Singer SDK, what its standard tests say of each, and what each writes: one JSON object.

Run in the environment that has the SDK; the argument is a folder in which pytest is found.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import tempfile
from pathlib import Path

from singer_sdk import Stream, Tap

HERE = Path(__file__)
NULLABLE = {"type": ["string", "null"]}
ONE = {"id": 1, "at": "2024-05-01T00:00:00Z", "v": "x"}
TWO = {"id": 2, "at": "2024-05-02T00:00:00Z", "v": "y"}


def broken(name, rows=(ONE, TWO), v=NULLABLE, key=None, stream=(), tap=(), raw=False):
    """A tap with one stream.

    Args:
        rows: what comes; without ``raw`` the SDK itself mends some of what is wrong.
        v: the schema of a field.
        key: the replication key.
        stream, tap: more of the two classes.
        raw: rows are written as they are.
    """
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}, "v": v},
    }

    def get_records(self, context):
        yield from map(dict, rows)

    def write_as_it_is(self, record):
        found = {"type": "RECORD", "stream": self.name, "record": record, "time_extracted": "2024-05-03T00:00:00Z"}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()

    of_stream = {"name": "a", "schema": schema, "primary_keys": ("id",), "replication_key": key}
    of_stream |= {"get_records": get_records, **dict(stream)}
    if raw:
        of_stream["_write_record_message"] = write_as_it_is
    made = type("A", (Stream,), of_stream)
    of_tap = {"name": f"tap-{name}", "config_jsonschema": {"properties": {}}}
    of_tap |= {"discover_streams": lambda self: [made(self)], **dict(tap)}
    return type("Broken", (Tap,), of_tap)


def fails(*_args, **_more):
    """In place of a method."""
    raise RuntimeError("it is broken")


def does_nothing(*_args, **_more):
    """In place of a method."""


def refuses_catalogs(self, *args, catalog=None, **more):
    """A tap that can't be made with a catalog."""
    if catalog is not None:
        fails()
    Tap.__init__(self, *args, catalog=catalog, **more)


def given(value, schema, **more):
    """A tap whose field is once what it should not be."""
    return broken("given", rows=(ONE | {"v": value}, TWO | {"v": None}), v=schema, raw=True, **more)


TAPS = {
    "good": broken("good"),
    "incremental": broken("incremental", key="at"),
    # Of the tap.
    "cli": broken("cli", tap={"print_about": classmethod(fails)}),
    "catalog-refused": broken("refused", tap={"__init__": refuses_catalogs}),
    "catalog-not-applied": broken("applied", stream={"apply_catalog": fails}),
    "connection": broken("connection", stream={"get_records": fails}),
    "progress-markers": broken(
        "markers",
        key="at",
        stream={
            "is_sorted": False,
            "_finalize_state": does_nothing,
            "finalize_state_progress_markers": lambda self, state=None: self._write_state_message(),
        },
    ),
    # Of streams.
    "no-rows": broken("none", rows=()),
    "schema": broken("schema", v={"type": "text"}, raw=True),
    "field-not-in-schema": broken("further", rows=(ONE | {"w": 1}, TWO), raw=True),
    "field-never-seen": broken("never", rows=[{"id": n, "at": ONE["at"]} for n in range(25)], raw=True),
    "does-not-fit": given(1.5, {"type": ["integer", "null"]}),
    "bound": given(11, {"type": ["integer", "null"], "maximum": 10}),
    "format": given("300.1.1.1", {"type": ["string", "null"], "format": "ipv4"}),
    "uuid": given("1234", {"type": ["string", "null"], "format": "uuid"}),
    "key-missing": broken("missing", rows=({"at": ONE["at"]}, {"at": TWO["at"]}), raw=True),
    "key-null-last": broken("null", rows=(ONE, TWO | {"id": None}), raw=True),
    "key-null-first": broken("null", rows=(ONE | {"id": None}, TWO), raw=True),
    "key-twice": broken("twice", rows=(ONE, TWO, ONE)),
    # Of fields.
    "boolean": given("maybe", {"type": ["boolean", "null"]}),
    "date-time": broken("soon", rows=(ONE | {"at": "soon"}, TWO), raw=True),
    "second-date-time": given("soon", {"type": ["string", "null"], "format": "date-time"}),
    "date": given("2024-13-01", {"type": ["string", "null"], "format": "date"}),
    "integer": broken("one", rows=(ONE | {"id": "one"}, TWO), raw=True),
    "second-integer": given("one", {"type": ["integer", "null"]}),
    "number": given("1.5", {"type": ["number", "null"]}),
    "object": given("x", {"type": ["object", "null"]}),
    "null": broken("null", rows=(ONE | {"v": None}, TWO), v={"type": "string"}, raw=True),
    # Where a test of the SDK is wrong.
    "may-be-text": given("one", {"type": ["integer", "string", "null"]}),
    "optional": broken("optional", rows=({"id": 1, "at": ONE["at"]}, TWO), v={"type": "string"}, raw=True),
}


def test_classes():
    """The SDK's standard tests of each tap, by the name of a class."""
    from singer_sdk.testing import get_tap_test_class  # it needs pytest

    return {f"Test_{name}": get_tap_test_class(tap, config={}) for name, tap in TAPS.items()}


def written(tap_class):
    """What a whole run writes, and the catalog."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.suppress(RuntimeError):
        tap = tap_class(config={}, validate_config=False)
        tap.sync_all()
    out.seek(0)
    return {"messages": out.read(), "catalog": tap_class(config={}).catalog_dict}


def judged(folder):
    """What the standard tests say: by tap, the names of those that failed."""
    sys.path.append(folder)
    import pytest

    found = {name: [] for name in TAPS}

    class Reports:
        def pytest_runtest_logreport(self, report):
            if report.failed:
                tap, test = report.nodeid.partition("::Test_")[2].split("::", 1)
                found[tap].append(test)

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "test_taps.py"
        path.write_text(
            f"import sys\nsys.path.insert(0, {str(HERE.parent)!r})\nimport sdk_checked\n"
            "globals().update(sdk_checked.test_classes())\n"
        )
        plugins = ["-p", "singer_sdk.testing.pytest_plugin", "-p", "no:cacheprovider"]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            pytest.main([str(path), "-q", "--rootdir", place, "-c", "/dev/null", *plugins], plugins=[Reports()])
    return found, said.getvalue()


if __name__ == "__main__":
    logging.disable()
    if sys.argv[1] == "--tap":  # one of them as a program: NAME, then Singer's flags
        logging.disable(logging.NOTSET)
        TAPS[sys.argv[2]].cli(sys.argv[3:])
    wrote = {name: written(tap) for name, tap in TAPS.items()}
    failed, said = judged(sys.argv[1])
    print(json.dumps({"failed": failed, "wrote": wrote, "said": said[-20000:]}))
