"""What burler writes where there is a lot of something, held against what it should be.

Beside records and the last STATE, each STATE on the way is held against what was out by then: one that is ahead would
lose rows, and a benchmark must not be won by that.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import replies  # ``checks`` has put its folder on the path
import standard
from checks import Wrong, moment, parse, same

if TYPE_CHECKING:
    from cases import Case
    from measure import Bench

Rows = dict[str, list[dict[str, Any]]]
CHECKED = {"parts": 2_500, "children": 1_800, "workers": 6_500}


def check(bench: Bench, case: Case) -> int:
    """Compare a case's messages with what they should be; how many records were compared.

    Raises:
        Wrong: there is a difference.
        Failed: the program ends with an error.
    """
    count = CHECKED[case.kind]
    return compare(case.work, parse(bench.output(case, count)), wanted(case.work, count))


def wanted(work: str, count: int) -> Rows:
    """The rows of each stream, as JSON has them."""
    kind, each = work.split("-")[:2]
    made: Rows
    if kind == "children":
        parents = list(standard.parents(count // (1 + int(each))))
        below = [row for parent in parents for row in standard.part(parent["id"], int(each))]
        made = {standard.STREAM: parents, standard.CHILDREN: below}
    elif kind == "parts":
        made = {standard.STREAM: [row for i in range(count // int(each)) for row in standard.part(i, int(each))]}
    else:
        accounts, of_each = replies.accounts(count)
        made = {standard.STREAM: [row for i in range(accounts * of_each) for row in replies.rows(i, of_each)]}
    return {stream: parse("\n".join(map(json.dumps, rows)).encode()) for stream, rows in made.items()}


def compare(work: str, messages: list[dict[str, Any]], right: Rows) -> int:
    """Hold the messages against the rows that they should carry.

    Raises:
        Wrong: there is a difference.
    """
    found: Rows = {stream: [] for stream in right}
    schemas: dict[str, Any] = {}
    states = 0
    for message in messages:
        kind, stream = message["type"], message.get("stream")
        if kind == "SCHEMA":
            schemas[message["stream"]] = message["schema"]
        elif kind == "RECORD":
            if schemas.get(message["stream"]) != standard.SCHEMA or stream not in found:
                raise Wrong(
                    f"a record of '{stream}', whose SCHEMA has not come: {schemas.get(message['stream'])!r:.80}"
                )
            moment(message["time_extracted"])
            found[message["stream"]].append(message["record"])
        elif kind == "STATE":
            states += 1
            _not_ahead(work, message["value"], found)
        else:
            raise Wrong(f"a message of an incremental stream: {message!r:.200}")
    for stream, rows in right.items():
        _records(stream, _sorted(work, found[stream]), _sorted(work, rows))
    last = messages[-1]
    if last["type"] != "STATE" or _plain(last["value"]) != _plain(_last(work, right)):
        raise Wrong(f"the last message should be a STATE with all bookmarks, not {last!r:.200}")
    if states < 2:
        raise Wrong("no STATE comes on the way")
    return sum(map(len, right.values()))


def _sorted(work: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where workers mix partitions, the order of partitions is none; rows of one stay in theirs."""
    return sorted(rows, key=lambda row: str(row.get("a"))) if work.startswith("workers") else rows


def _records(stream: str, found: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    if len(found) != len(right):
        raise Wrong(f"{len(found)} records of '{stream}', not {len(right)}")
    for number, (one, other) in enumerate(zip(found, right, strict=True)):
        if not same(one, other):
            raise Wrong(f"record {number} of '{stream}' is {one!r:.150}, not {other!r:.150}")


def _not_ahead(work: str, state: dict[str, Any], out: Rows) -> None:
    """No bookmark has passed what is out: rows of its partition, or what is below a parent."""
    entry = state.get("bookmarks", {}).get(standard.STREAM, {})
    rows = out[standard.STREAM]
    flat = moment(entry["ts"]) if "ts" in entry else None
    greatest: dict[str, Any] = defaultdict(lambda: None)
    for row in rows:
        greatest[row["a"]] = moment(row["ts"])  # they rise
    if flat is not None and (not rows or flat > moment(rows[-1]["ts"])):
        raise Wrong(f"a STATE is ahead of the rows: {state!r:.200}")
    for key, one in entry.get("partitions", {}).items():
        came = greatest[json.loads(key)["a"]]
        if came is None or moment(one["ts"]) > came:
            raise Wrong(f"a STATE is ahead of the rows of partition {key}: {one}")
    if flat is not None and work.startswith("children"):
        each = int(work.split("-")[1])
        passed = sum(moment(row["ts"]) <= flat for row in rows)
        if len(out[standard.CHILDREN]) < passed * each:
            raise Wrong(f"a STATE is ahead of the rows below {passed} parents: {state!r:.200}")


def _last(work: str, right: Rows) -> dict[str, Any]:
    """What the last STATE says."""
    rows = right[standard.STREAM]
    flat = {"ts": rows[-1]["ts"]}
    if work.startswith("children"):
        return {"bookmarks": {standard.STREAM: flat, standard.CHILDREN: {"parent_bookmark": flat}}}
    if work.endswith("asc"):
        return {"bookmarks": {standard.STREAM: flat}}
    keys = {json.dumps({"a": row["a"]}, separators=(",", ":")): {"ts": row["ts"]} for row in rows}
    return {"bookmarks": {standard.STREAM: {"partitions": keys}}}


def _plain(value: Any, key: str = "") -> Any:
    """A state in which date-times are moments: the same one may be written in several ways."""
    if isinstance(value, dict):
        return {name: _plain(inner, name) for name, inner in value.items()}
    return moment(value) if key == "ts" else value
