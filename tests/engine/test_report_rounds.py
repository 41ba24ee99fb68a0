"""A report of a tail: rounds of a stream are added up, and of its errors the newest stay."""

from __future__ import annotations

from typing import Any

from reportruns import ANY, Streams, streams_of

FAILURES = 1000
"""Kept in a report, at the most (docs/reports.md)."""


def tail(run: Streams, rounds: int) -> dict[str, Any]:
    return run.report(tail=True, tail_max_rounds=rounds, new_record_polling_interval_ms=1)


def test_rounds_are_added_up_and_the_plot_has_points_for_all_of_them():
    run = Streams()

    @run.tap.sync("orders", key_properties="id", replication_key="id", order="asc", schema=ANY, resume="exclusive")
    def orders(stream: Any) -> Any:
        yield from ({"id": (stream.bookmark or 0) + n} for n in (1, 2, 3))

    found = tail(run, 800)
    (one,) = found["streams"]
    assert {key: one[key] for key in ("status", "rows", "updated", "rounds", "bookmark_from", "bookmark_to")} == {
        "status": "succeeded",
        "rows": 2400,
        "updated": 2400,
        "rounds": 800,
        "bookmark_from": None,
        "bookmark_to": 2400,
    }
    assert found["totals"]["rows"] == 2400 and one["seconds"] < found["seconds"]
    (series,) = found["series"]
    assert 10 <= len(series["seconds"]) <= 501
    assert (series["rows"][-1], series["bookmark"][-1]) == (2400, 2400)
    assert max(b - a for a, b in zip(series["rows"], series["rows"][1:], strict=False)) < 2400 / 4


def test_parts_that_fail_in_each_round_are_told_in_each_and_of_many_the_newest_stay():
    """Where one stream fills the list another has room."""
    run = Streams()
    rounds: list[int] = []
    run.tap.partitions("orders", key="part")(lambda: [{"part": n} for n in range(40)])

    @run.tap.sync("orders", replication_key="id", schema=ANY)
    def orders(partition: Any) -> Any:
        if partition["part"] == 0:
            rounds.append(1)
        yield {"id": len(rounds)}
        raise ValueError(f"round {len(rounds)}")

    run.tap.partitions("users", key="part")(lambda: [{"part": 1}])

    @run.tap.sync("users", replication_key="id", schema=ANY)
    def users(partition: Any) -> Any:
        yield {"id": 1}
        if len(rounds) == 27:
            raise ValueError("new")

    found = streams_of(tail(run, 27))
    assert found["orders"]["error_count"] == 27 * 40
    kept = found["orders"]["errors"]
    assert FAILURES - 1 <= len(kept) <= FAILURES
    assert (kept[0]["message"], kept[-1]["message"]) == ("round 3", "round 27")
    assert [one["message"] for one in found["users"]["errors"]] == ["new"]
