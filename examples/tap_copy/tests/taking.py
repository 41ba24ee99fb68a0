"""What the tests take a run's rows with."""

import datetime as dt

import burler.batch
from burler.testing import run_tap
from tap_copy import tap


def batched(base, **more):
    """A run with BATCH on."""
    config = {**base.config, "batch_config": {"storage": {"root": str(base.folder)}}, **more}
    return run_tap(tap, config)


def messages(run, kind, stream=None):
    """The messages of one type."""
    return [m for m in run.messages if m["type"] == kind and stream in (None, m["stream"])]


def expanded(run, stream):
    """The rows of the files that a run names, as whoever gets the messages reads them."""
    schema = messages(run, "SCHEMA", stream)[-1]["schema"]
    return [row for m in messages(run, "BATCH", stream) for row in burler.batch.read(m, schema).rows()]


def by_value(rows, moments=()):
    """Rows as they are compared: date-times as moments."""
    return [
        {
            name: dt.datetime.fromisoformat(value) if name in moments and value is not None else value
            for name, value in row.items()
        }
        for row in rows
    ]
