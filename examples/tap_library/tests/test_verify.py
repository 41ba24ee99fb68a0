"""tap_library keeps the Singer rules: docs/verify.md."""

import tap_library
from burler.testing import verify_tap
from tap_library.data import Size

SMALL = Size(branches=3, authors=30, books=12, loans=18, events=2)
# The library has no other way: a request for each new or changed book, and for each such loan.
NOT_HERE = {"summaries": ["H703"], "loan_events": ["H703"]}


def test_it_keeps_the_rules(serve):
    server = serve(SMALL)
    found = verify_tap(tap_library.tap, server.config(), per_stream_ignores=NOT_HERE)
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"B302", "B305", "B311", "B312", "B325", "H701", "H702", "H703"} <= set(found.checked)
    streams = found.runs[0].streams
    assert set(streams) == set(tap_library.STREAMS)
    assert {"branches": 3, "authors": 30, "books": 12, "summaries": 12, "loans": 18}.items() <= {
        name: stream.rows for name, stream in streams.items()
    }.items()
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
