"""A real tap and the burler tap that takes its place give the same, and the new one goes on where the old one was."""

from __future__ import annotations

import json
from pathlib import Path

import moved_tap
import peers_environment
import pytest

from support.cli import burler
from tap_moved_gitlab.data import Data
from tap_moved_gitlab.server import TOKEN, Gitlab
from tests.console_pages import steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-singer-python.md"
NULLABLE = "schema.properties.id.type: ['null', 'integer'] -> 'integer'"
# In what the SCHEMAs differ: a key that may be null is none.
SCHEMAS = {name: [NULLABLE] for name in ("projects", "project_milestones", "groups", "group_milestones")}


@pytest.fixture(scope="module")
def old():
    """The command of tap-gitlab 0.5."""
    try:
        return [peers_environment.make_tap("gitlab") / "tap-gitlab"]
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the old tap can't be installed: {error}")


@pytest.fixture(scope="module")
def same():
    """What ``same.py`` of the page defines."""
    page = PAGE.read_text(encoding="utf-8")
    (text,) = (text for kind, name, text in steps(page) if (kind, name) == ("save", "same.py"))
    scope = {"__name__": "same"}
    exec(compile(text, "same.py", "exec"), scope)
    return scope


@pytest.fixture
def gitlab():
    with Gitlab(Data()).running() as server:
        yield server


def config(server, **more):
    given = {"projects": "", "groups": "", "start_date": "2024-01-01T00:00:00Z"}
    return {"api_url": server.url, "private_token": TOKEN, **given, **more}


def run_new(folder, config, state=None, *words):
    """The new tap, in this process."""
    (folder / "config.json").write_text(json.dumps(config))
    words = ["--config", folder / "config.json", *words]
    if state is not None:
        (folder / "state.json").write_text(json.dumps(state))
        words += ["--state", folder / "state.json"]
    done = burler("run", moved_tap.NEW[-1], *words, NO_PROXY="127.0.0.1")
    return moved_tap.Done(done.code, done.text.splitlines(), done.stderr, 0, 0)


def read(same, folder, done):
    (folder / "read.jsonl").write_text("\n".join(done.lines), encoding="utf-8")
    schemas, rows = same["read"](folder / "read.jsonl")
    for row in rows["projects"].values():
        row.pop("users", None)  # the old tap sends it, and its SCHEMA does not know it
    return schemas, rows


@pytest.mark.parametrize(
    "chosen",
    [
        {"groups": "7", "projects": "shop/p2"},
        pytest.param({"groups": "shop"}, marks=pytest.mark.nightly),
        pytest.param({"projects": "1 shop/p2"}, marks=pytest.mark.nightly),
        pytest.param({"groups": "7", "projects": "3"}, marks=pytest.mark.nightly),
    ],
)
def test_they_give_the_same(tmp_path, old, same, gitlab, chosen):
    before = moved_tap.run(old, tmp_path, config(gitlab, **chosen))
    after = run_new(tmp_path, config(gitlab, **chosen))
    assert (before.code, after.code) == (0, 0), after.log
    (schemas, rows), (new_schemas, new_rows) = read(same, tmp_path, before), read(same, tmp_path, after)
    assert new_rows == rows and len(rows["commits"]) in (45, 90, 135)
    assert new_schemas.keys() == schemas.keys()
    for name, schema in schemas.items():
        assert new_schemas[name]["key_properties"] == schema["key_properties"]
        found = list(same["differences"](schema["schema"], new_schemas[name]["schema"], "schema"))
        assert found == SCHEMAS.get(name, []), name
    assert TOKEN in before.log and TOKEN not in after.log


def test_the_new_one_goes_on_from_each_state_of_the_old_one(tmp_path, old, same, gitlab):
    """Also from the STATEs on the way, as after a kill: the rows are those that the old tap would have brought."""
    whole = config(gitlab, projects="1 2 3")
    first = moved_tap.run(old, tmp_path, whole)
    assert len(first.states) == 3
    gitlab.data.later()
    for state, issues in zip(first.states, (51, 27, 2), strict=True):
        before = moved_tap.run(old, tmp_path, whole, state)
        after = run_new(tmp_path, whole, {"bookmarks": {}, **state})
        assert after.code == 0, after.log
        rows, new_rows = read(same, tmp_path, before)[1], read(same, tmp_path, after)[1]
        assert new_rows == rows
        assert len(new_rows["issues"]) == issues
    # And from its own state, which still holds the old keys.
    again = run_new(tmp_path, whole, after.states[-1])
    assert sorted(row["id"] for row in again.rows("issues")) == [2000]  # at the bookmark
    assert again.states[-1] == after.states[-1]


def test_a_state_without_bookmarks_is_refused_and_says_why(tmp_path, gitlab):
    done = run_new(tmp_path, config(gitlab, projects="1"), {"project_1": "2024-05-01T16:41:00Z"})
    assert (done.code, done.lines) == (2, [])
    assert "holds neither 'bookmarks' nor 'currently_syncing'" in done.log


def test_commits_that_gitlab_does_not_count(tmp_path, old):
    """Since 13.5 GitLab gives no X-Total-Pages for commits: the old tap takes the first page for all."""
    with Gitlab(Data(), count_commits=False).running() as server:
        before = moved_tap.run(old, tmp_path, config(server, projects="1"))
        after = run_new(tmp_path, config(server, projects="1"))
    assert (before.code, len(before.rows("commits"))) == (0, 20)
    assert (after.code, len(after.rows("commits"))) == (0, 45)


def test_a_project_that_is_gone_stops_no_other(tmp_path, old, gitlab):
    before = moved_tap.run(old, tmp_path, config(gitlab, projects="1 99 3"))
    after = run_new(tmp_path, config(gitlab, projects="1 99 3"))
    assert (before.code, after.code) == (1, 1)
    assert [row["id"] for row in before.rows("projects")] == [1]
    assert [row["id"] for row in after.rows("projects")] == [1, 3]
    assert "projects: partition 99: GET" in after.log and "404 Not Found" in after.log


def test_a_stream_that_is_selected_later_gets_its_past(tmp_path, gitlab):
    first = run_new(tmp_path, config(gitlab, projects="1"), None, "--select", "projects")
    assert {message.get("stream") for message in first.messages} == {"projects", None}
    second = run_new(tmp_path, config(gitlab, projects="1"), first.states[-1])
    assert len(second.rows("issues")) == 25
