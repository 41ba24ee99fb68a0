"""The streams' schemas: what GitLab says of each thing, under the names that tables have had since tap-gitlab 0.5."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": ["null", "string"]}
NUMBER: Schema = {"type": ["null", "integer"]}
YES_NO: Schema = {"type": ["null", "boolean"]}
ID: Schema = {"type": "integer"}
NAME: Schema = {"type": "string"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
MOMENT_OR_NONE: Schema = {"anyOf": [MOMENT, {"type": "null"}]}


def rows(**fields: Schema) -> Schema:
    """An object of these fields."""
    return {"type": "object", "properties": fields}


def maybe(kind: Schema) -> Schema:
    """This, or null."""
    return {"anyOf": [kind, {"type": "null"}]}


def many(kind: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": kind}


def each(kind: Schema, names: str) -> dict[str, Schema]:
    """The same kind for several fields."""
    return dict.fromkeys(names.split(), kind)


_ACCESS = maybe(rows(access_level=NUMBER, notification_level=NUMBER))
_MILESTONES = rows(
    id=ID,
    **each(NUMBER, "iid project_id group_id"),
    **each(TEXT, "title description due_date start_date state"),
    **each(MOMENT, "updated_at created_at"),
)
SCHEMAS = {
    "projects": rows(
        id=ID,
        **each(TEXT, "name name_with_namespace path path_with_namespace description default_branch avatar_url"),
        **each(TEXT, "http_url_to_repo ssh_url_to_repo web_url"),
        **each(NUMBER, "approvals_before_merge creator_id forks_count open_issues_count owner_id star_count"),
        **each(YES_NO, "archived builds_enabled container_registry_enabled issues_enabled lfs_enabled"),
        **each(YES_NO, "merge_requests_enabled public public_builds request_access_enabled shared_runners_enabled"),
        **each(YES_NO, "only_allow_merge_if_all_discussions_are_resolved only_allow_merge_if_build_succeeds"),
        **each(YES_NO, "snippets_enabled wiki_enabled"),
        **each(MOMENT_OR_NONE, "created_at last_activity_at"),
        visibility_level=NUMBER,
        tag_list=maybe(many(NAME)),
        namespace=rows(id=NUMBER, **each(TEXT, "kind name path")),
        permissions=rows(group_access=_ACCESS, project_access=_ACCESS),
        shared_with_groups=maybe(many(rows(group_id=ID, group_name=NAME, group_access_level=ID))),
    ),
    "branches": rows(
        project_id=ID,
        name=NAME,
        commit_id=TEXT,
        **each(YES_NO, "merged protected developers_can_push developers_can_merge"),
    ),
    "commits": rows(
        id=NAME,
        project_id=ID,
        short_id=NAME,
        created_at=MOMENT,
        allow_failure=YES_NO,
        **each(TEXT, "title message author_name author_email committer_name committer_email"),
    ),
    "issues": rows(
        **each(ID, "id iid project_id"),
        **each(NUMBER, "milestone_id author_id assignee_id user_notes_count"),
        **each(TEXT, "title description state due_date web_url"),
        **each(YES_NO, "subscribed confidential"),
        **each(MOMENT_OR_NONE, "updated_at created_at"),
        labels=many(NAME),
    ),
    "project_milestones": _MILESTONES,
    "group_milestones": _MILESTONES,
    "users": rows(id=ID, **each(TEXT, "username name state avatar_url web_url")),
    "groups": rows(
        id=ID,
        **each(TEXT, "name full_name path full_path description avatar_url web_url"),
        **each(YES_NO, "lfs_enabled request_access_enabled"),
        visibility_level=NUMBER,
        projects=maybe(many(rows(id=ID))),
    ),
}
