"""What the GitLab server of this example holds: one group of three projects, and what has happened in them."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]

_USERS = [
    {"id": 100 + n, "name": name, "username": name.lower(), "state": "active", "avatar_url": None, "web_url": f"/{n}"}
    for n, name in enumerate(("Ada", "Bob", "Cy", "Köse"))
]
_GROUP = {"id": 7, "name": "Shop", "path": "shop", "kind": "group", "full_path": "shop"}


def moment(minute: int) -> str:
    """A moment so many minutes after the beginning of May 2024, as GitLab writes it."""
    return f"{datetime(2024, 5, 1, tzinfo=UTC) + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S}.000Z"


class Data:
    """The rows by what they belong to. ``later()`` is as if a day had gone by."""

    def __init__(self, commits: int = 45, issues: int = 25) -> None:
        self.projects = {number: _project(number) for number in (1, 2, 3)}
        self.commits = {number: [_commit(number, n) for n in range(commits)] for number in self.projects}
        self.issues = {number: [_issue(number, n) for n in range(issues)] for number in self.projects}
        self.branches = {number: [_branch(number, name) for name in ("main", "next")] for number in self.projects}
        self.milestones = {number: [_milestone(number * 10, project_id=number)] for number in self.projects}
        self.users = {number: [_USERS[0], _USERS[number]] for number in self.projects}
        more = {"description": "All of it", "visibility": "private", "request_access_enabled": True}
        self.groups = {7: {**_GROUP, **more}}
        self.group_milestones = {7: [_milestone(70, group_id=7), _milestone(71, group_id=7)]}

    def later(self) -> None:
        """In project 2 a day later: a new commit, a new issue, one that was changed, a new branch."""
        minute = 3000
        self.commits[2].append(_commit(2, len(self.commits[2]), minute))
        self.issues[2].append(_issue(2, len(self.issues[2]), minute))
        changed = copy.deepcopy(self.issues[2][0])
        self.issues[2][0] = {**changed, "title": "changed", "updated_at": moment(minute + 1)}
        self.branches[2].append(_branch(2, "fix"))
        self.projects[2] = {**self.projects[2], "last_activity_at": moment(minute + 1)}


def _project(number: int) -> Row:
    permissions = {"project_access": {"access_level": 40, "notification_level": 3}, "group_access": None}
    return {
        "id": number,
        "description": None if number == 3 else f"The {number}. project",
        "default_branch": "main",
        "visibility": "private",
        "ssh_url_to_repo": f"git@gitlab.example:shop/p{number}.git",
        "http_url_to_repo": f"https://gitlab.example/shop/p{number}.git",
        "web_url": f"https://gitlab.example/shop/p{number}",
        "tag_list": ["a", "b"],
        "name": f"P{number}",
        "name_with_namespace": f"Shop / P{number}",
        "path": f"p{number}",
        "path_with_namespace": f"shop/p{number}",
        "owner": _USERS[0],
        "issues_enabled": True,
        "merge_requests_enabled": True,
        "wiki_enabled": False,
        "container_registry_enabled": False,
        "snippets_enabled": False,
        "created_at": moment(number),
        "last_activity_at": moment(1000 + number),
        "creator_id": 100,
        "namespace": _GROUP,
        "archived": False,
        "avatar_url": None,
        "star_count": number,
        "forks_count": 0,
        "open_issues_count": 25,
        "shared_runners_enabled": True,
        "public_builds": True,
        "shared_with_groups": [],
        "only_allow_merge_if_build_succeeds": False,
        "request_access_enabled": False,
        "only_allow_merge_if_all_discussions_are_resolved": False,
        "approvals_before_merge": 0,
        "permissions": permissions,
        "statistics": {"commit_count": 45, "storage_size": 1038090, "repository_size": 1038090},
    }


def _commit(project: int, number: int, minute: int | None = None) -> Row:
    author = _USERS[number % 4]
    at = moment(20 * number + project if minute is None else minute)
    return {
        "id": f"{project}{number:039x}",
        "short_id": f"{project}{number:07x}",
        "title": f"commit {number}",
        "message": f"commit {number}\n\nwith „quotes“ and a \\ in it",
        "author_name": author["name"],
        "author_email": f"{author['username']}@shop.example",
        "authored_date": at,
        "committer_name": author["name"],
        "committer_email": f"{author['username']}@shop.example",
        "committed_date": at,
        "created_at": at,
        "parent_ids": [],
    }


def _issue(project: int, number: int, minute: int | None = None) -> Row:
    closed = number % 3 == 0
    return {
        "id": project * 1000 + number,
        "iid": number + 1,
        "project_id": project,
        "title": f"issue {number}",
        "description": None if number % 5 == 0 else "It does not work.",
        "state": "closed" if closed else "opened",
        "created_at": moment(project + number),
        "updated_at": moment(30 * number + project if minute is None else minute),
        "labels": [] if number % 2 else ["bug", "soon"],
        "milestone": _milestone(project * 10, project_id=project) if number % 4 == 0 else None,
        "assignee": _USERS[1] if number % 3 == 1 else None,
        "author": _USERS[number % 4],
        "upvotes": number % 3,
        "downvotes": 0,
        "user_notes_count": number,
        "due_date": "2024-06-01" if number % 2 else None,
        "confidential": False,
        "web_url": f"https://gitlab.example/shop/p{project}/issues/{number + 1}",
        "weight": None,
        "subscribed": True,
    }


def _branch(project: int, name: str) -> Row:
    rights = {"developers_can_push": False, "developers_can_merge": name == "next", "can_push": True}
    is_main = name == "main"
    head = _commit(project, len(name))
    return {"name": name, "commit": head, "merged": False, "protected": is_main, "default": is_main, **rights}


def _milestone(number: int, **owner: int) -> Row:
    return {
        "id": number,
        "iid": 1,
        **owner,
        "title": f"v{number}",
        "description": "",
        "state": "active",
        "created_at": moment(number),
        "updated_at": moment(number + 30),
        "due_date": "2024-07-01",
        "start_date": None,
    }
