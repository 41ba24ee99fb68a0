"""Taps that break a rule of behaviour, and the same tap keeping it."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from burler.spec import RULES, Choice, Findings, Limits
from burler.verify import Options, Program, ProgramSubject, verify

SHOP = Path(__file__).parent / "taps" / "shop.py"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "pad": {"type": "string"}}}
CATALOG = {
    "streams": [
        {
            "tap_stream_id": name,
            "stream": name,
            "schema": SCHEMA,
            "key_properties": ["id"],
            "metadata": [
                {"breadcrumb": [], "metadata": {"inclusion": "available", "selected": True}},
                {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}},
                {"breadcrumb": ["properties", "pad"], "metadata": {"inclusion": "available"}},
            ],
        }
        for name in ("people", "orders")
    ]
}
STATE = {"bookmarks": {"people": {"id": 150}}}
HASTY = Limits(stop_seconds=1.0)
SECRET = "n0b0dy-reads-this"


def shop(folder: Path, *bugs: str) -> Program:
    """The tap of a shop, with bugs."""
    config = folder / "config.json"
    config.write_text(json.dumps({"token": SECRET}))
    words = " ".join(f"--bug {bug}" for bug in bugs)
    return Program.of_command(f"{sys.executable} -S -E {SHOP} --config {config} {words}", folder=folder)


def check(
    program: Program, *codes: str, state=STATE, first_rows: float | None = 0.1, **more
) -> tuple[dict[str, str], dict[str, str]]:
    """What is found (code -> message), and what could not be looked at; of some rules, or of all."""
    findings = Findings(RULES)
    limits = HASTY if "hangs" in program.shown else Limits()
    unchecked = ProgramSubject(program).behave(
        findings,
        Options(choice=Choice(select=codes or ("ALL",)), limits=limits, **more),
        catalog=CATALOG,
        state=state,
        streams={"people", "orders"},
        first_rows=first_rows,
    )
    return {one.code: one.message for one in findings}, unchecked


def discover(program: Program) -> tuple[dict[str, str], object, dict[str, str]]:
    """What is found, the catalog, and what could not be looked at."""
    findings = Findings(RULES)
    catalog, unchecked = ProgramSubject(program).discover(findings, Options())
    return {one.code: one.message for one in findings}, catalog, unchecked


BREAKING = [
    ("P601", ["refuses-both"], "exclude each other"),
    ("P602", ["ignores-selection"], "a row came"),
    ("P602", ["fails-on-no-selection"], "no stream is selected"),
    ("P603", ["fails-on-nothing"], "exit code 1"),
    ("P603", ["rows-without-schema"], "without a SCHEMA"),
    ("P603", ["loses-bookmarks"], "no bookmark of the stream"),
    ("P604", ["silent-without-config"], "says nothing"),
    ("P604", ["writes-before-config"], "to stdout before it fails"),
    ("P605", ["swallows-epipe"], "exit code 0"),
    ("P605", ["hangs-at-epipe"], "still runs 1 s later"),
    ("P606", ["ignores-sigterm"], "switched off"),
    ("P606", ["goes-on"], "goes on to its end"),
    ("P606", ["hangs-after-sigterm"], "still runs 1 s after SIGTERM"),
    ("P607", ["dies-in-handler", "buffered"], "exit code 0, and"),
    ("P608", ["early-bookmark"], "people id="),
    ("P610", ["exits-zero"], "exit code is 0"),
    ("P612", ["traceback"], "TypeError"),
    ("P613", ["tells-secret"], "'token'"),
    ("P616", ["fails-on-properties"], "KeyError"),
    ("P616", ["ignores-properties"], "no row comes"),
    ("P618", ["leaves-child"], "sleep"),
    ("P618", ["child-keeps-pipes"], "sleep"),
    ("P619", ["default-sigterm", "buffered"], "kills the tap"),
    ("P620", ["exit-code-3"], "exit code 3"),
    ("P620", ["raises-in-handler"], "RuntimeError: terminated"),
    ("P621", ["drops-bookmarks"], "no bookmark of the stream"),
    ("P622", ["schema-late"], "no SCHEMA"),
    ("P623", ["only-full-table", "half-done"], "no STATE covers"),
    ("P624", ["only-full-table", "activates-half"], "it activates their version"),
    ("P625", ["sends-all-fields"], "'pad' comes though it is deselected"),
    ("P625", ["fails-with-fewer-fields"], "KeyError"),
    ("P626", ["epipe-traceback"], "Broken pipe"),
    ("B314", ["refuses-state"], "KeyError"),
    ("B314", ["refuses-gone"], "not known"),
]


@pytest.mark.parametrize(("code", "bugs", "said"), BREAKING, ids=[f"{code}-{bugs[0]}" for code, bugs, _ in BREAKING])
def test_what_breaks_a_rule_is_found(tmp_path: Path, code: str, bugs: list[str], said: str):
    codes = [code] if code != "P613" else [code, "P601"]  # a run is needed in which the secret is told
    codes = codes if code != "P618" else [code, "P602"]
    found, unchecked = check(shop(tmp_path, *bugs), *codes)
    assert said in found.get(code, ""), (found, unchecked)
    assert found.keys() == {code}
    assert unchecked == {}
    assert SECRET not in found[code]


def test_a_tap_that_keeps_all_rules_has_no_findings_and_nothing_unchecked(tmp_path: Path):
    assert check(shop(tmp_path)) == ({}, {})


def test_a_source_with_nothing_newer_than_just_now_is_no_failure(tmp_path: Path):
    state = {"bookmarks": {"people": {"id": 150, "at": "2023-04-05T06:07:08Z"}}}
    assert check(shop(tmp_path), "P603", state=state) == ({}, {})
    found, _ = check(shop(tmp_path, "fails-just-now"), "P603", state=state)
    assert "run from a STATE of just now: the tap ended with exit code 1" in found["P603"]


@pytest.mark.parametrize(
    ("code", "bugs", "reason"),
    [
        ("P601", ["catalog-only"], "does not know both"),
        ("P616", ["catalog-only"], "does not know --properties"),
        ("P604", ["needs-no-config"], "runs without a config"),
        ("P605", ["tiny", "swallows-epipe"], "fits into a pipe"),
        ("P606", ["tiny", "buffered"], "before SIGTERM could be sent|too small to tell"),
        ("P606", ["tiny", "ignores-sigterm"], "before SIGTERM could be sent|too small to tell"),
        ("P608", ["default-sigterm"], "SIGTERM kills the tap at once"),
        ("P608", ["goes-on"], "too small to tell"),
        ("P602", ["traceback-always"], "the plain run ended with exit code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_cannot_be_decided_says_why(tmp_path: Path, code: str, bugs: list[str], reason: str):
    found, unchecked = check(shop(tmp_path, *bugs), code, first_rows=None if "traceback-always" in bugs else 0.1)
    assert found == {}
    assert unchecked.keys() == {code}
    assert re.search(reason, unchecked[code])


def test_without_a_state_nothing_is_said_of_runs_from_one(tmp_path: Path):
    found, unchecked = check(shop(tmp_path), "P603", "P621", "P622", state=None)
    assert found == {}
    assert set(unchecked) == {"P603", "P621", "P622"}


def test_a_command_without_config_is_not_run_without_one(tmp_path: Path):
    program = dataclasses.replace(shop(tmp_path, "needs-no-config")).with_config(None)
    found, unchecked = check(program, "P604", "P610", "P612")
    assert found == {}
    assert set(unchecked) == {"P604", "P610", "P612"}


@pytest.mark.nightly
def test_a_run_that_hangs_without_config_is_ended(tmp_path: Path):
    """It is given half a minute."""
    found, _ = check(shop(tmp_path, "hangs-without-config"), "P604")
    assert "still runs after" in found["P604"]


def test_rules_that_nobody_asks_for_cost_no_run(tmp_path: Path):
    progress: list[str] = []
    assert check(shop(tmp_path), "P602", state=None, progress=progress.append) == ({}, {})
    assert progress == ["run with nothing selected"]


def test_a_tap_that_knows_only_properties_gets_its_catalog_there(tmp_path: Path):
    assert check(shop(tmp_path, "properties-only"), "P602", "B314", state=None) == ({}, {})


DISCOVERING = [
    ("P611", "noise", "INFO {connecting}"),
    ("P611", "noise-after", "done"),
    ("P613", "tells-secret", "'token'"),
    ("P614", "discovery-fails", "exit code 1); it said last: CRITICAL no such host"),
    ("P614", "discovery-no-json", "prints no catalog but: people"),
    ("P615", "unstable", "metadata"),
]


@pytest.mark.parametrize(("code", "bug", "said"), DISCOVERING, ids=[f"{code}-{bug}" for code, bug, _ in DISCOVERING])
def test_what_breaks_a_rule_of_discovery_is_found(tmp_path: Path, code: str, bug: str, said: str):
    found, catalog, unchecked = discover(shop(tmp_path, bug))
    assert found.keys() == {code}
    assert said in found[code] and SECRET not in found[code]
    assert (catalog is None) == (code == "P614")
    assert set(unchecked) == ({"P611", "P615"} if code == "P614" else set())


@pytest.mark.parametrize("bug", ["none", "shuffled"])
def test_discovery_that_keeps_the_rules_gives_the_catalog(tmp_path: Path, bug: str):
    found, catalog, unchecked = discover(shop(tmp_path, bug))
    assert (found, unchecked) == ({}, {})
    assert {item["tap_stream_id"] for item in catalog["streams"]} == {"people", "orders"}


def test_a_tap_that_cannot_discover_is_not_asked_to(tmp_path: Path):
    found, catalog, unchecked = discover(shop(tmp_path, "no-discovery"))
    assert (found, catalog) == ({}, None)
    assert set(unchecked) == {"P611", "P614", "P615"}


def test_a_run_that_failed_is_a_finding_and_one_that_was_cut_short_is_none(tmp_path: Path):
    asked = {"catalog": CATALOG, "resume": False, "behaviour": False}
    failed = verify(ProgramSubject(shop(tmp_path, "traceback").with_config(None)), Options(**asked))
    (message,) = [one.message for one in failed.findings if one.code == "P609"]
    assert "TypeError" in message
    cut = verify(ProgramSubject(shop(tmp_path)), Options(**asked, max_records=20))
    assert "P609" not in {one.code for one in cut.findings}
    assert "requests of another program are not seen" in cut.unchecked["H702"]


def test_each_rule_has_a_tap_that_breaks_it():
    elsewhere = {"P609", "P627"}  # right above, and in test_properties_only
    shown = {code for code, *_ in (*BREAKING, *DISCOVERING)} | elsewhere
    assert {code for code in RULES if code[0] == "P"} <= shown


def test_what_is_selected_is_asked_without_a_state(tmp_path: Path):
    """From its last STATE the tap below has nothing new, selected or not."""
    tap = tmp_path / "tap.py"
    tap.write_text(
        "import json, sys\n"
        "if '--help' in sys.argv:\n"
        "    sys.exit(print('--catalog FILE --state FILE'))\n"
        "words = dict(zip(sys.argv, sys.argv[1:]))\n"
        "state = json.load(open(words['--state'])) if '--state' in words else {}\n"
        "since = state.get('bookmarks', {}).get('people', {}).get('id', 0)\n"
        "print(json.dumps({'type': 'SCHEMA', 'stream': 'people', 'schema': {}, 'key_properties': ['id']}))\n"
        "for n in range(1, 6):\n"
        "    if n > since:\n"
        "        print(json.dumps({'type': 'RECORD', 'stream': 'people', 'record': {'id': n}}))\n"
        "print(json.dumps({'type': 'STATE', 'value': {'bookmarks': {'people': {'id': 5}}}}))\n"
    )
    program = Program((sys.executable, str(tap)))
    found, _ = check(program, "P602", "P621", state={"bookmarks": {"people": {"id": 5}}})
    assert found.keys() == {"P602"}
