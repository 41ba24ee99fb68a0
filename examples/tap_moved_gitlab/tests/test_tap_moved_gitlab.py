"""tap_moved_gitlab over its own server, in this process."""

import pytest

import tap_moved_gitlab
from burler.testing import run_tap
from tap_moved_gitlab.data import Data
from tap_moved_gitlab.server import TOKEN, Gitlab

START = "2024-01-01T00:00:00Z"


@pytest.fixture
def gitlab(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Gitlab(Data(), count_commits=False).running() as server:
        yield server


def run(server, state=None, *, select=None, **config):
    given = {"api_url": server.url, "private_token": TOKEN, "projects": "1 2", "start_date": START, **config}
    return run_tap(tap_moved_gitlab.tap, given, state=state, select=select)


def test_a_project_with_all_that_belongs_to_it(gitlab):
    out = run(gitlab, projects="2")
    assert not out.result.errors
    (project,) = out.records("projects")
    assert (project["id"], project["owner_id"], project["last_activity_at"]) == (2, 100, "2024-05-01T16:42:00Z")
    assert len(out.records("commits")) == 45 and {row["project_id"] for row in out.records("commits")} == {2}
    assert [row["commit_id"] for row in out.records("branches")] == [f"2{4:039x}", f"2{4:039x}"]
    issue = out.records("issues")[-1]
    assert (issue["author_id"], issue["assignee_id"], issue["milestone_id"]) == (100, None, 20)
    assert {"ACTIVATE_VERSION"}.isdisjoint(out.types)


def test_the_next_run_asks_for_what_has_changed(gitlab):
    first = run(gitlab)
    gitlab.data.later()
    gitlab.asked.clear()
    second = run(gitlab, first.states[-1])
    assert sorted(row["id"] for row in second.records("issues")) == [1024, 2000, 2024, 2025]  # two at their bookmarks
    assert "updated_after=2024-05-01T12%3A02%3A00.000Z" in next(one for one in gitlab.asked if "/2/issues" in one)
    bookmarks = second.states[-1]["bookmarks"]
    assert bookmarks["projects"]["partitions"]["2"]["last_activity_at"] == "2024-05-03T02:01:00.000Z"
    assert bookmarks["issues"]["partitions"]["2"] == {"updated_at": "2024-05-03T02:01:00.000Z"}


def test_where_nothing_has_happened_since_the_start_date_nothing_is_asked_for(gitlab):
    out = run(gitlab, start_date="2024-05-02T00:00:00Z")
    assert not out.result.errors and out.records("projects") == []
    assert len(gitlab.asked) == 2


@pytest.mark.parametrize("old", ["2024-05-01T16:42:00.000000Z", "2024-05-01T18:42:00+02:00"])
def test_the_old_bookmark_counts_while_it_is_the_later_one(gitlab, old):
    out = run(gitlab, {"bookmarks": {}, "project_2": old}, projects="2")
    assert out.records("issues") == [] and len(out.records("commits")) == 45
    gitlab.data.later()
    again = run(gitlab, out.states[-1], projects="2")
    assert len(again.records("issues")) == 2
    assert again.states[-1]["project_2"] == old  # carried along; it does no harm
    assert [row["id"] for row in run(gitlab, again.states[-1], projects="2").records("issues")] == [2000]


def test_groups(gitlab):
    out = run(gitlab, projects="", groups="shop", select="groups,group_milestones,projects")
    assert [row["id"] for row in out.records("projects")] == [1, 2, 3]
    assert out.records("groups")[0]["projects"] == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert [row["id"] for row in out.records("group_milestones")] == [70, 71]
    later = run(gitlab, projects="", groups="shop", select="group_milestones", start_date="2024-05-01T01:41:00Z")
    assert [row["id"] for row in later.records("group_milestones")] == [71]


def test_a_wrong_token_is_one_clear_error(gitlab, caplog):
    out = run(gitlab, private_token="wrong-one-9921", projects="1")
    assert out.result.exit_code == 1 and out.records("projects") == []
    assert "partition 1" in caplog.text and "401 Unauthorized" in caplog.text and "wrong-one" not in caplog.text
