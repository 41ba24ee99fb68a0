"""What the runs of a tap that is looked at are given: states of just now, catalogs with less in them."""

from __future__ import annotations

import copy
import datetime as dt
import json
import sys

import pytest

from burler.spec import RULES, Findings
from burler.verify import Options, Program, ProgramSubject

# Writes down what it is given, and has a row, whatever is selected: a line without its end, which counts.
TAP = """
import json, sys
if "--help" in sys.argv:
    sys.exit(print(FLAGS))
words = dict(zip(sys.argv, sys.argv[1:]))
files = {flag: open(words[flag]).read() for flag in ("--catalog", "--properties", "--state") if flag in words}
with open(LOG, "a") as log:
    log.write(json.dumps({flag: json.loads(text) for flag, text in files.items()}) + "\\n")
print(json.dumps({"type": "SCHEMA", "stream": "people", "schema": {}, "key_properties": ["id"]}))
print(json.dumps({"type": "RECORD", "stream": "people", "record": {"id": "1", "name": "x"}}), end="", flush=True)
"""


def given(folder, catalog, *flags, state=None, found=()):
    """What each run was given; ``found`` are codes that are found, among others."""
    log = folder / "log"
    log.touch()
    (folder / "tap.py").write_text(
        TAP.replace("LOG", repr(str(log))).replace("FLAGS", repr(" ".join(["--state", *flags])))
    )
    program = Program((sys.executable, "-S", "-E", str(folder / "tap.py")))
    findings = Findings(RULES)
    before = copy.deepcopy((catalog, state))
    subject = ProgramSubject(program)
    subject.behave(findings, Options(), catalog=catalog, state=state, streams={"people"}, first_rows=0.1)
    assert (catalog, state) == before and set(found) <= {one.code for one in findings}
    return [json.loads(line) for line in log.read_text().splitlines()]


def catalog(**metadata: dict) -> dict:
    fields = {name: {"type": "string"} for name in metadata if name != "stream"}
    crumbs = {"stream": {}, **metadata}
    return {
        "streams": [
            {
                "tap_stream_id": "shop-people",
                "stream": "people",
                "schema": {"type": "object", "properties": fields},
                "key_properties": ["id"],
                "metadata": [
                    {"breadcrumb": [] if name == "stream" else ["properties", name], "metadata": held}
                    for name, held in crumbs.items()
                ],
            }
        ]
    }


AVAILABLE = {"inclusion": "available"}
CATALOG = catalog(
    stream={"selected": True, "valid-replication-keys": ["at"]},
    id=AVAILABLE,
    at=AVAILABLE,
    kind={"inclusion": "automatic", "selected": False},
    name=AVAILABLE,
    mail={"inclusion": "available", "selected": False},
    photo={"inclusion": "unsupported", "selected": True},
)
FORMS = {
    "2024-05-06T07:08:09Z": "%Y-%m-%dT%H:%M:%SZ",
    "2024-05-06T07:08:09.123Z": "%Y-%m-%dT%H:%M:%S.000Z",
    "2024-05-06 07:08:09+02:00": "%Y-%m-%d %H:%M:%S+00:00",
    "2024-05-06T07:08:09-0500": "%Y-%m-%dT%H:%M:%S+0000",
    "2024-05-06T07:08:09": "%Y-%m-%dT%H:%M:%S",
    "2024-05-06": "%Y-%m-%d",
}
KEPT = ["2131-05-06", "v2024-05-06", 17, None]


def test_a_bookmark_of_just_now_has_the_form_of_the_old_one(tmp_path):
    values = [*FORMS, *KEPT]
    state = {"bookmarks": {f"s{n}": {"at": value} for n, value in enumerate(values)}}
    state["bookmarks"]["people"] = {"at": "2024-05-06", "partitions": [{"context": {"day": "2024-01-01"}}]}
    began = dt.datetime.now(dt.UTC).replace(microsecond=0) - dt.timedelta(seconds=1)
    states = [one["--state"] for one in given(tmp_path, CATALOG, "--catalog", state=state) if "--state" in one]
    bookmarks = [one["bookmarks"] for one in states if "s0" in (one.get("bookmarks") or {})]
    now = next(one for one in bookmarks if one["s0"] != {"at": values[0]})
    for number, (old, form) in enumerate(FORMS.items()):
        moment = dt.datetime.strptime(now[f"s{number}"]["at"], form).replace(tzinfo=dt.UTC)
        assert began.date() <= moment.date() and (old == "2024-05-06" or began <= moment), old
    assert [now[f"s{number}"]["at"] for number in range(len(FORMS), len(values))] == KEPT
    assert now["people"]["partitions"] == [{"context": {"day": "2024-01-01"}}]


def chosen(catalog):
    """The stream's own ``selected``, and those of its fields that are not selected."""
    crumbs = {tuple(one["breadcrumb"]): one["metadata"] for one in catalog["streams"][0]["metadata"]}
    return crumbs[()].get("selected"), {at[-1] for at, one in crumbs.items() if at and one.get("selected") is False}


def test_catalogs_have_less_in_them_but_keys_and_what_is_automatic(tmp_path):
    runs = given(tmp_path, CATALOG, "--catalog", found=["P602"])
    found = [chosen(one["--catalog"]) for one in runs if "--catalog" in one]
    assert (False, {"kind", "mail"}) in found, "nothing is selected"
    assert (True, {"kind", "mail", "name"}) in found, "fewer fields"


def test_old_properties_have_the_selection_in_their_schemas(tmp_path):
    schemas = [one["--properties"]["streams"][0]["schema"] for one in given(tmp_path, CATALOG, "--properties")]
    chosen = [{name for name, node in one["properties"].items() if node["selected"]} for one in schemas]
    assert {"id", "at", "kind", "name"} in chosen and {"id", "at", "kind"} in chosen
    assert {one["selected"] for one in schemas} == {True, False}


@pytest.mark.parametrize("flag", ["--catalog", "--properties"])
def test_catalogs_of_any_shape_are_survived(tmp_path, flag):
    stranger = [
        {},
        {"streams": None},
        {"streams": [1, {}, {"metadata": 5, "schema": 7}]},
        {"streams": [{"stream": ["x"], "metadata": [1, {"breadcrumb": [[], {}]}, {"breadcrumb": [], "metadata": 3}]}]},
        {"streams": [{"schema": {"properties": [1]}, "key_properties": 3, "metadata": [{"breadcrumb": [1, 2]}]}]},
    ]
    for strange in stranger:
        assert given(tmp_path, strange, flag)
