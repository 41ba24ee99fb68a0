"""The benchmark's rows about the lake: what burler writes and reads is compared, wrong files and wrong rows would be
seen, and plans agree."""

import copy
import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from burler.lake import LakeWriter, open_store
from burler.singer.messages import Schema

HERE = Path(__file__).parent
ROWS = 5
STATE = {"type": "STATE", "value": {"bookmarks": {"std": {"version": 7}}}}


def lake_of(bench, folder, change=lambda rows: None):
    """A lake with the rows that it should hold, but for a change."""
    standard = bench["standard"]
    rows = copy.deepcopy(list(standard.rows(ROWS)))
    change(rows)
    with LakeWriter(open_store(str(folder)), "tap-std", emit_state=lambda state: None) as writer:
        writer.schema(Schema(standard.STREAM, standard.SCHEMA, ("id",)))
        for number, row in enumerate(rows):
            time = f"2024-05-06T07:08:{number:02}.000000Z"
            line = {"type": "RECORD", "stream": standard.STREAM, "record": row, "time_extracted": time}
            writer.page(standard.STREAM, json.dumps(line).encode() + b"\n", 1, [time])
    return folder


def compare(bench, lake, states=(STATE,)):
    wanted = bench["checks"].parse("\n".join(map(json.dumps, bench["standard"].rows(ROWS))).encode())
    return bench["lake_checks"].compare(lake, list(states), wanted)


def test_the_right_files_pass(bench, tmp_path):
    assert compare(bench, lake_of(bench, tmp_path)) == ROWS


WRONG = {
    "a value": lambda rows: rows[4].update(a="other"),
    "a nested value": lambda rows: rows[1]["nested"].update(x=77),
    "a field less": lambda rows: [row.pop("arr") for row in rows],
    "a row less": lambda rows: rows.pop(),
    "a row twice": lambda rows: rows.insert(1, copy.deepcopy(rows[1])),
    "an unclean value": lambda rows: rows[1].update(ts="yesterday"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_an_error(bench, tmp_path, name):
    with pytest.raises(bench["checks"].Wrong):
        compare(bench, lake_of(bench, tmp_path, WRONG[name]))


def test_other_lines_than_states_are_an_error(bench, tmp_path):
    lake = lake_of(bench, tmp_path)
    for states in ([], [{"bookmarks": {}}], [STATE, {"type": "RECORD"}]):
        with pytest.raises(bench["checks"].Wrong):
            compare(bench, lake, states)


def test_files_that_the_manifest_counts_wrongly_are_an_error(bench, tmp_path):
    lake = lake_of(bench, tmp_path)
    (path,) = lake.glob("raw/*/*/*/*.singer.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(bench["checks"].Wrong):
        compare(bench, lake)


def read_from_a_lake(bench, work):
    """What a program that reads should show."""
    standard = bench["standard"]
    rows = copy.deepcopy(list(standard.rows(ROWS)))
    if work == "readrows":
        return rows
    time = "2024-05-06T07:08:09.123456Z"
    lines = [{"type": "RECORD", "stream": "std", "record": row, "time_extracted": time} for row in rows]
    if work == "readpages":
        return lines
    schema = {"type": "SCHEMA", "stream": "std", "schema": standard.SCHEMA, "key_properties": ["id"]}
    state = {"type": "STATE", "value": {"bookmarks": {"std": {"generation": "5f1c0e", "sequence": 2}}}}
    return [schema, *lines, state]


def compare_read(bench, found, work, replayed=True):
    wanted = bench["checks"].parse("\n".join(map(json.dumps, bench["standard"].rows(ROWS))).encode())
    found = bench["checks"].parse("\n".join(map(json.dumps, found)).encode())
    bench["lake_checks"].compare_read(found, wanted, work, replayed=replayed)


@pytest.mark.parametrize("work", ["readlines", "readpages", "readrows"])
def test_the_right_rows_of_a_lake_pass(bench, work):
    found = read_from_a_lake(bench, work)
    compare_read(bench, found, work)
    compare_read(bench, found[::-1], work, replayed=False)  # files in another order, a SCHEMA anywhere


WRONG_READ = {
    "a row less": lambda found: found.pop(2),
    "a row twice": lambda found: found.insert(2, copy.deepcopy(found[2])),
    "a value": lambda found: found[2].get("record", found[2]).update(f2=0.25),
    "a field less": lambda found: found[2].get("record", found[2]).pop("arr"),
}
WRONG_MESSAGES = {
    "no SCHEMA": lambda found: found.pop(0),
    "another schema": lambda found: found[0].update(schema={}),
    "a SCHEMA too many": lambda found: found.insert(3, copy.deepcopy(found[0])),
    "no STATE": lambda found: found.pop(),
    "the STATE of another stream": lambda found: found[-1].update(value={"bookmarks": {"other": {"sequence": 2}}}),
}


@pytest.mark.parametrize("work", ["readlines", "readpages", "readrows"])
@pytest.mark.parametrize("name", WRONG_READ)
def test_wrong_rows_read_from_a_lake_are_an_error(bench, name, work):
    found = read_from_a_lake(bench, work)
    WRONG_READ[name](found)
    with pytest.raises(bench["checks"].Wrong):
        compare_read(bench, found, work)


@pytest.mark.parametrize("name", WRONG_MESSAGES)
def test_wrong_messages_around_the_rows_are_an_error(bench, name):
    found = read_from_a_lake(bench, "readlines")
    WRONG_MESSAGES[name](found)
    with pytest.raises(bench["checks"].Wrong):
        compare_read(bench, found, "readlines")


def test_pages_with_other_messages_are_an_error(bench):
    found = [*read_from_a_lake(bench, "readpages"), STATE]
    with pytest.raises(bench["checks"].Wrong, match="STATE"):
        compare_read(bench, found, "readpages")


def test_those_that_burler_is_compared_with_read_the_right_rows_too(bench, monkeypatch, pretend):
    cases = bench["lake_cases"]

    def output(case, rows):
        if case.program is bench["cases"].FLOOR:
            return read_from_a_lake(bench, "readpages")
        found = read_from_a_lake(bench, case.work)
        return found if case.program is cases.READING else found[:-1]

    pretend(output)
    for row in cases.RATES:
        if row.case.program is cases.READING and row.case.work != "readarrow":
            monkeypatch.setattr(bench["lake_checks"], "CHECKED_ROWS", ROWS)
            if row.case.work == "readlines":  # its last line is the STATE: nothing is missing
                assert bench["lake_checks"].check_reading(bench["measure"].Bench(HERE, peers=False), row.case) == ROWS
                continue
            with pytest.raises(bench["checks"].Wrong, match=f"{ROWS - 1} records, not {ROWS}"):
                bench["lake_checks"].check_reading(bench["measure"].Bench(HERE, peers=False), row.case)


def test_what_is_read_is_made_once_for_each_number_of_rows(bench, tmp_path):
    cases, own = bench["lake_cases"], bench["measure"].Bench(tmp_path, peers=False)
    one, other = (bench["cases"].Case(program, "readpages") for program in (cases.READING, cases.READ_FLOOR))
    for case in (one, other):
        figures = own.run(case, 900)
        assert figures.cpu > 0
    lakes = sorted(path.parent.name for path in tmp_path.glob("given-*/lake"))
    assert lakes == ["given-0", "given-1"]  # 1,500 rows to learn from, and 900
    files = [len(list(tmp_path.glob(f"{name}/lake/raw/*/*/*/*.singer.gz"))) for name in lakes]
    assert files == [3, 2]


def test_the_work_of_another_process_counts(bench, tmp_path):
    cases, own = bench["lake_cases"], bench["measure"].Bench(tmp_path, peers=False)
    few, many = (own.run(bench["cases"].Case(cases.ZCAT, "readlines"), rows).cpu for rows in (10, 40_000))
    assert many > 2 * few


@pytest.fixture
def plans(monkeypatch):
    spec = importlib.util.spec_from_file_location("lake_plan_bench", HERE / "lake_plan_bench.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lake_plan_bench", module)
    spec.loader.exec_module(module)
    return module


def test_plans_by_manifest_and_by_listing_are_the_same(plans):
    pytest.importorskip("moto")
    took = plans.measure(1200, 2)
    assert {name: len(rounds) for name, rounds in took.items()} == {"told": 2, "listed": 2}
    for told, listed in zip(took["told"], took["listed"], strict=True):
        # One LIST is the look at the store when it is opened; one GET asks for a manifest.
        assert told.requests == {"GET": 1, "LIST": 1}
        assert listed.requests == {"GET": 1, "LIST": 1 + 2}
        assert min(told.cpu, told.server, listed.cpu, listed.server) > 0


def test_the_benchmark_says_what_a_plan_took_and_what_of_it_is_the_servers(run_bench):
    pytest.importorskip("moto")
    done = run_bench("--lake-plan", "70", "--runs", "1")
    assert done.returncode in (0, 1), done.stderr
    assert "70 files" in done.stdout
    assert done.stdout.count("moto's") == 3
    assert "1 GET, 1 LIST\n" in done.stdout and "1 GET, 2 LIST\n" in done.stdout


def test_a_plan_that_lacks_a_file_is_an_error(plans, monkeypatch):
    pytest.importorskip("moto")
    whole = plans.plan
    monkeypatch.setattr(
        plans, "plan", lambda url, bucket: whole(url, bucket)[1:] if bucket == "listed" else whole(url, bucket)
    )
    with pytest.raises(SystemExit, match="the plans differ"):
        plans.measure(70, 1)
