"""The benchmark runs, its table has its rows, and wrong output would be seen. Nothing is timed here."""

import copy
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_run_has_all_rows_and_compares_all_outputs(bench, run_bench, cells):
    """All but the memory of cases whose speed is measured here, too: their processes are the same."""
    cases, results = bench["cases"], bench["results"]
    rates = [row for row in cases.RATES if row.needs is None or bench["run"]._installed(row.needs)]
    measured = {row.case for row in cases.RATES}
    memory = [row for row in cases.MEMORY if row.case not in measured]
    assert memory
    names = set(bench["run"].ALL_NAMES) - {row.name for row in cases.MEMORY if row not in memory}
    done = run_bench("--quick", "--no-peers", "--rows", "2000", "--runs", "1", "--row", *sorted(names))
    assert done.returncode == 0, done.stdout + done.stderr
    for row in rates:
        found = cells(done.stdout, row.title)
        assert float(found[1].replace(",", "")) > 0
        assert float(found[3]) > 0
        assert found[-1] in (results.PASS, results.MISS, results.NONE)
    for row in memory:
        assert cells(done.stdout, row.title)[4] in (results.PASS, results.MISS)
    for row in cases.STARTS:
        found = cells(done.stdout, row.title)
        assert (found[3] == results.NONE) == (row.over is not None)  # that one needs a peer
    growth = bench["growth"]
    for row in growth.GROWTH:
        found = cells(done.stdout, row.title)
        assert len([float(cost) for cost in found[2].split(";")]) == 2
        assert float(found[3]) > 0
        assert all(0 <= float(share) < 1 for share in found[4].split(";"))
        assert found[-1] in (results.PASS, results.MISS)
    [waiting] = growth.WORKERS
    for number, _case in waiting.cases:
        assert float(cells(done.stdout, str(number))[3]) > 0
    parts = {"big": bench["checks"].CHECKED_BIG_ROWS, "parts": 2500, "children": 1800, "workers": 6400}
    kinds = {row.case for row in (*rates, *memory, *growth.GROWTH)} | {case for _number, case in waiting.cases}
    records = sum(parts.get(case.kind, 2500) for case in kinds)
    assert f"before timing: {records:,} records of {len(kinds)} kinds of output" in done.stdout
    assert "error" not in done.stdout


def test_each_row_about_memory_stands_in_its_table(bench, pretend, cells, monkeypatch, capsys):
    cases, results, run_ = bench["cases"], bench["results"], bench["run"]
    ran = pretend(output=None)
    monkeypatch.setattr(run_.checks, "check", lambda _bench, _case: 1)
    monkeypatch.setattr(run_, "CHECKS", {})
    rows = [row for row in cases.MEMORY if row.needs is None or run_._installed(row.needs)]
    assert run_.main(["--quick", "--no-peers", "--row", *(row.name for row in rows)]) == 0
    out = capsys.readouterr().out
    for row in rows:
        assert cells(out, row.title)[4] == results.PASS  # one byte, however many rows there are
        assert sum(case == row.case and not learning for case, learning in ran) == 2


def test_a_profile_names_functions(run_bench):
    done = run_bench("--profile", "pages", "--rows", "2000")
    assert done.returncode == 0, done.stderr
    assert "tottime" in done.stdout
    assert "outlet.py" in done.stdout


def messages(bench, work, *, count=3):
    """What a tap should print for a few rows."""
    standard = bench["standard"]
    rows = list(standard.rows(count))
    version = {} if work == "keyed" else {"version": 7}
    moment = "2024-05-06T07:08:09.123456Z"
    bookmark = {"ts": rows[-1]["ts"]} if work == "keyed" else version
    out = [
        {"type": "SCHEMA", "stream": "std", "schema": standard.SCHEMA, "key_properties": ["id"]},
        *({"type": "RECORD", "stream": "std", "record": row, "time_extracted": moment, **version} for row in rows),
        {"type": "STATE", "value": {"bookmarks": {"std": bookmark}}},
    ]
    return bench["checks"].parse("\n".join(map(json.dumps, out)).encode())


def wanted(bench, *, count=3):
    """The reference's records for them."""
    return bench["checks"].parse("\n".join(map(json.dumps, bench["standard"].rows(count))).encode())


@pytest.mark.parametrize("work", ["pages", "keyed"])
def test_the_right_output_passes(bench, work):
    case = bench["cases"].Case(bench["cases"].BURLER, work)
    found = messages(bench, work)
    assert bench["checks"].compare(case, found, wanted(bench)) == 3
    found[1]["record"].update(ts="2024-01-02T04:04:05+01:00", f1=0)  # the same moment, and 0.0
    assert bench["checks"].compare(case, found, wanted(bench)) == 3


BROKEN = {
    "a value": lambda found: found[2]["record"].update(a="other"),
    "a nested value": lambda found: found[2]["record"]["nested"].update(x=2.0),
    "a last digit": lambda found: found[2]["record"].update(f2=found[2]["record"]["f2"].next_plus()),
    "a number as text": lambda found: found[2]["record"].update(id="1"),
    "a type": lambda found: found[2]["record"].update(id=True),
    "another moment": lambda found: found[2]["record"].update(ts="2024-01-02T03:04:06Z"),
    "a time without a zone": lambda found: found[2]["record"].update(ts="2024-01-02T03:04:05.000001"),
    "a field more": lambda found: found[3]["record"].update(more=None),
    "a field less": lambda found: found[3]["record"].pop("arr"),
    "a row less": lambda found: found.pop(2),
    "no last row": lambda found: found.pop(3),
    "a row twice": lambda found: found.insert(2, copy.deepcopy(found[2])),
    "rows in another order": lambda found: found.insert(2, found.pop(1)),
    "no time_extracted": lambda found: found[1].update(time_extracted="now"),
    "a time_extracted without a zone": lambda found: found[1].update(time_extracted="2024-05-06T07:08:09.123456"),
    "another stream": lambda found: found[1].update(stream="other"),
    "no SCHEMA": lambda found: found.pop(0),
    "another schema": lambda found: found[0].update(schema={}),
    "no STATE": lambda found: found.pop(),
    "an old STATE": lambda found: found[-1].update(
        value={"bookmarks": {"std": {"version": 6, "ts": "2024-01-01T00:00Z"}}}
    ),
}


@pytest.mark.parametrize("work", ["pages", "keyed"])
@pytest.mark.parametrize("name", BROKEN)
def test_wrong_output_is_an_error(bench, work, name):
    case = bench["cases"].Case(bench["cases"].BURLER, work)
    found = messages(bench, work)
    BROKEN[name](found)
    with pytest.raises(bench["checks"].Wrong):
        bench["checks"].compare(case, found, wanted(bench))


def test_a_keyed_stream_needs_its_states_on_the_way(bench):
    case = bench["cases"].Case(bench["cases"].BURLER, "keyed")
    found = messages(bench, "keyed", count=2000)
    with pytest.raises(bench["checks"].Wrong, match="1 STATEs"):
        bench["checks"].compare(case, found, wanted(bench, count=2000))
    found.insert(1001, {"type": "STATE", "value": {"bookmarks": {"std": {"ts": found[1000]["record"]["ts"]}}}})
    bench["checks"].compare(case, found, wanted(bench, count=2000))


def test_a_row_whose_output_is_wrong_is_an_error_and_is_not_timed(bench, pretend, capsys):
    rows = bench["standard"].rows
    ran = pretend(output=lambda case, count: ({"type": "RECORD", "record": r} for r in rows(count)))
    assert bench["run"].main(["--no-peers", "--row", "pages", "memory-pages", "--runs", "2"]) == 1
    out = capsys.readouterr().out
    assert "**error**: burler: pages: the first message is not the stream's SCHEMA" in out
    assert "Compared with the reference before timing: 0 records" in out
    assert {case.program.name for case, _learning in ran} == {"floor"}
    assert [learning for _case, learning in ran] == [True, False, False]


def test_what_peers_fail_at_is_a_note_and_burler_is_measured_all_the_same(bench, pretend, cells, monkeypatch, capsys):
    measure, run_ = bench["measure"], bench["run"]
    pretend(output=None)
    monkeypatch.setattr(run_.checks, "check", lambda _bench, _case: 1)
    monkeypatch.setattr(bench["environments"], "python_of", lambda name: sys.executable)
    start = measure.Bench._start

    def fails(self, case, rows, more, counted=None):
        if case.program.environment is not None:
            raise measure.Failed(f"exit code 1: no {case.program.environment} today")
        return start(self, case, rows, more)

    monkeypatch.setattr(measure.Bench, "_start", fails)
    assert run_.main(["--row", "pages", "--runs", "1"]) == 0
    out = capsys.readouterr().out
    assert "- singer-sdk: rows: exit code 1: no singer-sdk today" in out
    assert cells(out, "RECORD to a pipe, full shaping, dicts in pages")[-1] == bench["results"].NONE


def test_a_peer_that_cannot_be_installed_is_said_in_one_line(bench, pretend, monkeypatch, capsys):
    environments, run_ = bench["environments"], bench["run"]
    pretend(output=None)
    monkeypatch.setattr(run_.checks, "check", lambda _bench, _case: 1)
    asked = []

    def python_of(name):
        asked.append(name)
        if name == "singer-sdk":
            raise environments.NotInstalled("ERROR: no wheel for this Python")
        return sys.executable

    monkeypatch.setattr(environments, "python_of", python_of)
    assert run_.main(["--row", "pages", "rows", "--runs", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("singer-sdk is left out: ERROR: no wheel for this Python") == 1
    assert asked.count("singer-sdk") == 1  # though two programs live there
    assert "dlt 5.00" in out  # a fifth of the rows in the same second


def test_output_that_cannot_be_read_and_a_command_that_fails_are_errors(bench, pretend, monkeypatch, capsys):
    pretend(output=lambda case, count: [{"type": "RECORD"}] * count)
    monkeypatch.setattr(bench["startup"], "EMPTY", "raise SystemExit(7)")
    assert bench["run"].main(["--no-peers", "--row", "keyed", "empty", "--runs", "1"]) == 1
    out = capsys.readouterr().out
    assert "**error**: burler: keyed: its output can't be read: KeyError('record')" in out
    assert "**error**: run of an empty stream: exit code 7" in out


def test_bars_are_reached_or_missed(bench, summary):
    cases, results = bench["cases"], bench["results"]
    row = next(row for row in cases.RATES if row.name == "pages")
    floor, sdk = (bar.against for bar in row.bars)
    found = results.Results(rates={row.case: summary(row.case, cpu=1.0)})
    assert found.rate_verdict(row) == results.NONE
    found.rates |= {floor: summary(floor, cpu=0.56), sdk: summary(sdk, cpu=4.0, rows=200)}
    assert found.rate_verdict(row) == results.PASS
    found.rates[floor] = summary(floor, cpu=0.54)
    assert found.rate_verdict(row) == results.MISS
    assert found.reached(row, row.bars[1]) == results.PASS


def test_memory_is_flat_or_not(bench):
    cases, results = bench["cases"], bench["results"]
    row = next(row for row in cases.MEMORY if row.name == "memory-rows")

    def verdict(few, many):
        figures = bench["measure"].Figures
        memory = {
            (row.case, count): bench["measure"].Summary(row.case, count, (figures(1.0, 1.0, peak * 1_000_000),))
            for count, peak in ((row.few, few), (row.many, many))
        }
        return results.Results(memory=memory).memory_verdict(row)

    assert verdict(30, 43) == results.PASS
    assert verdict(30, 44) == results.MISS
    assert verdict(55, 61) == results.MISS


def test_the_docs_page_takes_the_tables_and_keeps_the_rest(bench, tmp_path):
    report = bench["report"]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.into_docs(page, "new\n")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnew\n\n{report.END}\nafter\n"
    page.write_text("no markers")
    with pytest.raises(ValueError, match=r"page\.md has no lines"):
        report.into_docs(page, "new\n")


def test_the_docs_name_every_row_and_program(bench):
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    cases = bench["cases"]
    assert bench["report"].BEGIN in text
    growth = bench["growth"]
    for row in (*cases.RATES, *cases.MEMORY, *cases.STARTS, *growth.GROWTH, *growth.WORKERS):
        assert f"`{row.name}`" in text, row.name
    for program in (*cases.PROGRAMS, *growth.PROGRAMS):
        assert program.does in text, program.name


def test_the_picture_shows_what_was_measured(bench, summary):
    from xml.etree import ElementTree

    cases, results = bench["cases"], bench["results"]
    row = next(row for row in cases.RATES if row.name == "pages")
    found = results.Results(rates={case: summary(case, cpu=cpu) for case, cpu in ((row.case, 1.0), (row.floor, 0.5))})
    root = ElementTree.fromstring(bench["drawing"].svg(found, list(cases.RATES)))
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [row.title, "burler", "1,000", "floor", "2,000"]
    assert float(bars[1].get("width")) == pytest.approx(2 * float(bars[0].get("width")), rel=0.01)


def test_rows_are_held_against_an_older_commit(bench, monkeypatch, capsys):
    """The older one is burler as it is here: what is looked at is that both are run, and a line told for each row."""
    before = bench["before"]
    monkeypatch.setattr(bench["environments"], "python_of_commit", lambda commit: sys.executable)
    assert before.main(["HEAD", "--row", "pages", "patterns", "import", "--rows", "400", "--runs", "1"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1:]} == {"pages", "patterns", "import"}
    assert all(float(line.split()[1]) > 0 for line in lines[1:])


def test_a_row_that_is_slower_than_before_has_lost(bench):
    before = bench["before"]
    steady, unsteady = 0.01, 0.2
    told = [
        before._verdict(before.Series(one, spread), before.Series(two, spread))
        for one, two, spread in (
            (0.96, 0.96, steady),
            (0.96, 0.98, steady),
            (0.96, 0.93, unsteady),
            (0.96, 0.96, unsteady),
        )
    ]
    assert told == ["LOST", "held", "LOST", "held (unsteady)"]


def test_an_older_commit_that_git_does_not_know_is_told(bench):
    with pytest.raises(bench["environments"].NotInstalled, match="no commit of this repository: 'nonsense'"):
        bench["environments"].python_of_commit("nonsense")
