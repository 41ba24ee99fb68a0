"""Messages for tests of the rules, a line each, and what is found in them."""

import datetime as dt
import json

from burler.spec import check_messages

NOW = dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
FIELDS = {
    "id": {"type": "integer"},
    "at": {"type": ["string", "null"], "format": "date-time"},
    "n": {"type": ["integer", "null"]},
}


def schema(stream="a", *, key="at", keys=("id",), fields=None, **more):
    """A SCHEMA; of an incremental stream by ``at``, unless ``key`` says otherwise."""
    wire = {
        "type": "SCHEMA",
        "stream": stream,
        "schema": {"type": "object", "properties": FIELDS if fields is None else fields},
        "key_properties": list(keys),
    }
    return {**wire, **({"bookmark_properties": [key]} if key else {}), **more}


def row(which, at=None, stream="a", *, version=None, time=None, **more):
    """A RECORD of ``id``, and ``at`` if given."""
    wire = {"type": "RECORD", "stream": stream, "record": {"id": which, **({"at": at} if at else {}), **more}}
    if version is not None:
        wire["version"] = version
    if time is not None:
        wire["time_extracted"] = time
    return wire


def state(value=None, **bookmarks):
    """A STATE: ``state(a="2024-01-02T00:00:00Z")`` is the bookmark of stream a by ``at``."""
    if value is None:
        value = {"bookmarks": {stream: {"at": at} for stream, at in bookmarks.items()}}
    return {"type": "STATE", "value": value}


def day(number):
    """A time in January 2024."""
    return f"2024-01-{number:02}T00:00:00Z"


def lines(*messages):
    """Messages as bytes; a text is a line as it stands."""
    return b"".join((one if isinstance(one, str) else json.dumps(one)).encode() + b"\n" for one in messages)


def found(*messages, **given):
    """What is found, but for infos."""
    given = {"now": lambda: NOW, **given}
    return [one for one in check_messages(lines(*messages), **given) if one.severity != "info"]


def codes(*messages, **given):
    """The codes of what is found, each once, but for infos."""
    return sorted({one.code for one in found(*messages, **given)})


def finding(code, *messages, **given):
    """The one finding of a code."""
    (one,) = [one for one in found(*messages, **given) if one.code == code]
    return one
