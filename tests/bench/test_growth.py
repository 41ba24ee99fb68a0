"""The rows about a lot of something: wrong output would be seen, STATE bytes are counted, bars can be missed."""

import copy
import http.client
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
COUNTS = {"parts-5": 10, "parts-5-asc": 10, "children-5": 12, "workers-4": 6_500}


def messages(bench, work):
    """What a tap should print: rows, and a STATE that covers them, twice."""
    standard, right = bench["standard"], bench["growth_checks"].wanted(work, COUNTS[work])
    said = json.loads(json.dumps(right, default=float))
    rows, below = said[standard.STREAM], said.get(standard.CHILDREN, [])
    out = [{"type": "SCHEMA", "stream": name, "schema": standard.SCHEMA, "key_properties": ["id"]} for name in said]
    half = len(rows) // 2

    def records(stream, some):
        moment = "2024-05-06T07:08:09.123456Z"
        out.extend({"type": "RECORD", "stream": stream, "record": row, "time_extracted": moment} for row in some)

    for number, until in enumerate((half, len(rows)), 1):
        records(standard.STREAM, rows[until - half : until])
        records(standard.CHILDREN, below[(number - 1) * len(below) // 2 : number * len(below) // 2])
        last = bench["growth_checks"]._last(work, {standard.STREAM: rows[:until]})
        out.append({"type": "STATE", "value": last})
    return bench["checks"].parse("\n".join(map(json.dumps, out)).encode()), right


@pytest.mark.parametrize("work", COUNTS)
def test_the_right_output_passes(bench, work):
    found, right = messages(bench, work)
    assert bench["growth_checks"].compare(work, found, right) == sum(map(len, right.values()))


def test_workers_may_mix_partitions_but_not_the_rows_of_one(bench):
    found, right = messages(bench, "workers-4")
    compare, Wrong = bench["growth_checks"].compare, bench["checks"].Wrong
    assert found[1]["record"]["a"] != found[3000]["record"]["a"]
    found[1:3001] = sorted(found[1:3001], key=lambda message: message["record"]["a"], reverse=True)
    assert compare("workers-4", found, right) == 6_400
    assert found[1]["record"]["a"] == found[2]["record"]["a"]
    found[1], found[2] = found[2], found[1]
    with pytest.raises(Wrong, match="record"):
        compare("workers-4", found, right)


def _entry(found, at=-1):
    return [message for message in found if message["type"] == "STATE"][at]["value"]["bookmarks"]


def _swap(found):
    """The last two rows of a stream come the wrong way round."""
    *_others, one, other = (i for i, message in enumerate(found) if message["type"] == "RECORD")
    assert found[one]["stream"] == found[other]["stream"]
    found[one], found[other] = found[other], found[one]


BROKEN = {
    "a value": lambda found: found[3]["record"].update(b="other"),
    "another partition": lambda found: found[3]["record"].update(a="acc000009"),
    "a row less": lambda found: found.pop(3),
    "a row twice": lambda found: found.insert(3, copy.deepcopy(found[3])),
    "rows in another order": lambda found: _swap(found),
    "no time_extracted": lambda found: found[3].update(time_extracted="now"),
    "another stream": lambda found: found[3].update(stream="other"),
    "no SCHEMA": lambda found: found.pop(0),
    "another schema": lambda found: found[0].update(schema={}),
    "an ACTIVATE_VERSION": lambda found: found.insert(3, {"type": "ACTIVATE_VERSION", "stream": "std", "version": 1}),
    "no STATE": lambda found: found.pop(),
    "no STATE on the way": lambda found: found.remove(next(m for m in found if m["type"] == "STATE")),
    "a STATE before its rows": lambda found: found.insert(2, found.pop()),
    "a stream more in the last STATE": lambda found: _entry(found).update(other={"ts": "2024-01-02T03:04:05Z"}),
    "no bookmark in the last STATE": lambda found: _entry(found).pop("std"),
}


@pytest.mark.parametrize("work", ["parts-5", "parts-5-asc", "children-5"])
@pytest.mark.parametrize("name", BROKEN)
def test_wrong_output_is_an_error(bench, work, name):
    found, right = messages(bench, work)
    BROKEN[name](found)
    with pytest.raises(bench["checks"].Wrong):
        bench["growth_checks"].compare(work, found, right)


def test_a_state_ahead_of_what_it_speaks_of_is_an_error(bench):
    """On the way, where the last one is right: a run that was killed there would lose rows."""
    compare, Wrong = bench["growth_checks"].compare, bench["checks"].Wrong
    found, right = messages(bench, "parts-5")
    key = '{"a":"acc000000"}'
    _entry(found, 0)["std"]["partitions"][key]["ts"] = "2024-01-02T03:04:05.000005Z"  # its last row has .000004
    with pytest.raises(Wrong, match="ahead of the rows of partition"):
        compare("parts-5", found, right)
    found, right = messages(bench, "parts-5")
    _entry(found, 0)["std"]["partitions"]['{"a":"acc000001"}'] = {"ts": "2024-01-02T03:04:05.000000Z"}
    with pytest.raises(Wrong, match="ahead of the rows of partition"):
        compare("parts-5", found, right)
    found, right = messages(bench, "parts-5-asc")
    _entry(found, 0)["std"]["ts"] = "2024-01-02T03:04:05.000005Z"
    with pytest.raises(Wrong, match="ahead of the rows"):
        compare("parts-5-asc", found, right)
    found, right = messages(bench, "children-5")
    state = next(i for i, message in enumerate(found) if message["type"] == "STATE")
    found.insert(state - 1, found.pop(state))  # before the last row below the first parent
    with pytest.raises(Wrong, match="ahead of the rows below 1 parents"):
        compare("children-5", found, right)


LINES = [
    b'{"type":"SCHEMA","stream":"a"}',
    b'{"type":"RECORD","record":{"text":"{\\"type\\":\\"STATE\\"}"}}',
    b'{"type":"STATE","value":{}}',
    b'{"type": "STATE", "value": {"bookmarks": {}}}',
    b'{"type":"RECORD"}',
    b'{"type":"STATE","value":{"a":"' + b"x" * 300_000 + b'"}}',
    b'{"type":"RECORD","stream":"' + b"y" * 200_000 + b'"}',
    b'{"type":"STATE","value":1}',
]


@pytest.mark.parametrize("size", [7, 50_000, 10_000_000])
@pytest.mark.parametrize("lines", [LINES, LINES[2:], LINES[:2], LINES[2:3], []])
def test_the_reader_tells_state_bytes_from_others(lines, size, tmp_path):
    """However the pipe cuts what comes."""
    told, sent = tmp_path / "told.json", b"".join(line + b"\n" for line in lines)
    if size == 7:
        sent = sent[: sent.find(b"x" * 1000)]  # so small pieces take their time
        sent = sent[: sent.rfind(b"\n") + 1]
    command = [sys.executable, "-S", str(PROGRAMS / "reader.py"), str(told)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0) as reader:
        for begin in range(0, len(sent), size):
            piece = memoryview(sent)[begin : begin + size]
            while piece:
                piece = piece[reader.stdin.write(piece) :]
        reader.stdin.close()
    assert reader.returncode == 0
    states = [line for line in sent.splitlines(True) if line.startswith((b'{"type":"STATE"', b'{"type": "STATE"'))]
    found = json.loads(told.read_text())
    assert found == {
        "states": len(states),
        "state_bytes": sum(map(len, states)),
        "other_bytes": len(sent) - sum(map(len, states)),
        "last_bytes": len(states[-1]) if states else 0,
    }


def growth_of(bench, summary, *, costs, states=(10, 100)):
    """What is found for the first row: CPU seconds by things, and bytes of STATE and others."""
    row = bench["growth"].GROWTH[0]
    counted = bench["measure"].States(3, *states, 5)
    return row, bench["results"].Results(
        growth={
            (row.case, things): summary(row.case, cpu=cpu, rows=things * row.rows_each, states=counted)
            for things, cpu in costs.items()
        }
    )


def test_cost_per_row_is_flat_or_not(bench, summary):
    growth, results = bench["growth"], bench["results"]
    # A start of a second is taken off: 99 and 3,999 partitions more cost 0.99 s and so many times that.
    row, found = growth_of(bench, summary, costs={1: 1.0, 100: 1.99, 4000: 1.0 + 39.99 * 1.29})
    assert growth.microseconds(found, row, row.case, 100) == pytest.approx(200)
    assert growth.grown(found, row, row.case) == pytest.approx(1.29)
    assert growth.growth_verdict(found, row) == results.PASS
    row, found = growth_of(bench, summary, costs={1: 1.0, 100: 1.99, 4000: 1.0 + 39.99 * 1.31})
    assert growth.growth_verdict(found, row) == results.MISS
    row, found = growth_of(bench, summary, costs={1: 1.0, 100: 1.99, 4000: 40.99}, states=(100, 100))
    assert growth.growth_verdict(found, row) == results.PASS
    row, found = growth_of(bench, summary, costs={1: 1.0, 100: 1.99, 4000: 40.99}, states=(101, 100))
    assert growth.growth_verdict(found, row) == results.MISS
    row, found = growth_of(bench, summary, costs={1: 1.0, 4000: 40.99})
    assert growth.growth_verdict(found, row) == results.NONE


def test_the_run_with_the_most_state_bytes_counts(bench):
    measure, case = bench["measure"], bench["growth"].GROWTH[0].case
    figures = [measure.Figures(1.0, 1.0, 1, 1.0, measure.States(1, size, 1000, 1)) for size in (10, 30, 20)]
    assert measure.Summary(case, 1, tuple(figures)).states.state_bytes == 30


def test_workers_are_worth_it_or_not(bench, summary):
    growth, results = bench["growth"], bench["results"]
    [row] = growth.WORKERS

    def verdict(of_16):
        seconds = {1: 32.0, 2: 16.0, 4: 8.0, 8: 4.0, 16: of_16}
        found = {case: summary(case, whole=seconds[number]) for number, case in row.cases if seconds[number]}
        return growth.workers_verdict(results.Results(workers=found), row)

    assert verdict(2.0) == verdict(2.49) == results.PASS
    assert verdict(2.51) == results.MISS
    assert verdict(None) == results.NONE


def test_quick_runs_have_fewer_things_and_always_more_of_many_than_of_few(bench):
    for row in bench["growth"].GROWTH:
        assert row.counts(row.case, 1.0) == (row.few, row.many)
        for scale in (1e-6, 0.01, 0.1, 0.5):
            few, many = row.counts(row.case, scale)
            assert 2 <= few <= row.few and 2 * few <= many <= row.many


@pytest.mark.parametrize("count", [100, 1_600, 6_400, 6_500, 51_200])
def test_replies_hold_all_rows_in_accounts_of_one_size(bench, count):
    replies, standard = bench["replies"], bench["standard"]
    accounts, of_each = replies.accounts(count)
    assert accounts <= replies.MOST_ACCOUNTS and 0 <= count - accounts * of_each * 100 < 100 * of_each
    rows = [row for number in (0, of_each - 1, accounts * of_each - 1) for row in replies.rows(number, of_each)]
    assert rows[0]["id"] == 0 and rows[-1]["id"] == accounts * of_each * 100 - 1
    assert {row["a"] for row in rows} == {standard.account(0), standard.account(accounts - 1)}


def test_the_source_takes_its_time_and_serves_several_at_once(bench, tmp_path):
    run, replies = bench["growth_run"], bench["replies"]
    one = bench["measure"].Bench(tmp_path, peers=False)
    with run.serving(one, 400, 0.1):
        address = one.environment["BENCH_SOURCE"]
        begun = time.monotonic()
        connections = [http.client.HTTPConnection(address) for _ in range(4)]
        for number, connection in enumerate(connections):
            connection.request("GET", f"/{number}")  # all have asked before the first is answered
        got = [connection.getresponse().read() for connection in connections]
        assert time.monotonic() - begun >= 0.1
        for connection in connections:
            connection.close()
        assert got == [replies.body(number, 1) for number in range(4)]
    assert one.environment == {}
    with pytest.raises(OSError):
        replies.Source(address).get(0)


def test_a_source_that_does_not_start_is_said(bench, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench["growth_run"], "PROGRAMS", tmp_path)
    assert bench["run"].main(["--no-peers", "--quick", "--row", "workers"]) == 1
    assert "**error**: workers: the source over HTTP did not start" in capsys.readouterr().out


def test_a_row_whose_output_is_wrong_is_an_error_and_is_not_timed(bench, pretend, capsys):
    ran = pretend(output=lambda case, count: [{"type": "STATE", "value": {}}])
    assert bench["run"].main(["--no-peers", "--row", "children", "partitions", "--runs", "2"]) == 1
    out = capsys.readouterr().out
    assert "**error**: burler: children-5: 0 records of 'std', not 300" in out
    assert "**error**: burler: parts-50: 0 records of 'std', not 2500" in out
    assert ran == []


def test_peers_stand_beside_with_their_state_bytes(bench, pretend, cells, monkeypatch, capsys):
    run_ = bench["run"]
    pretend(output=None)
    monkeypatch.setitem(run_.CHECKS, "parts", lambda _bench, _case: 1)
    monkeypatch.setattr(bench["environments"], "python_of", lambda name: sys.executable)
    assert run_.main(["--row", "partitions", "--runs", "1"]) == 0
    out = capsys.readouterr().out
    ratios = cells(out, "partitions of 50 rows, own bookmark each")[6]
    assert ratios == "singer-sdk 1.00 (100); singer-sdk 1.00 (4,000)"
    for program in ("burler", "singer-sdk"):
        found = [line for line in out.splitlines() if line.startswith(f"| {program}: parts-50 |")]
        assert [line.split("|")[2].strip() for line in found] == ["100 partitions", "4,000 partitions"]
        assert cells(found[0], f"{program}: parts-50")[6:9] == ["2", "0.00 (0.00)", "0.5"]


def test_a_profile_of_partitions_names_functions(run_bench):
    done = run_bench("--profile", "partitions", "--rows", "2000")
    assert done.returncode == 0, done.stderr
    assert "tottime" in done.stdout
    assert "unit.py" in done.stdout
