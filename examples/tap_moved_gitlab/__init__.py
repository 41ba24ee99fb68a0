"""tap-gitlab, moved to burler: the streams, keys, config and state of tap-gitlab 0.5, which stands on singer-python."""

from datetime import datetime
from urllib.parse import quote

import burler

from .schemas import SCHEMAS

tap = burler.tap(
    "tap-gitlab",
    config_spec={
        "type": "object",
        "required": ["api_url", "private_token", "start_date"],
        "properties": {
            "api_url": {"type": "string", "description": "As https://gitlab.com/api/v4."},
            "private_token": {"type": "string", "secret": True},
            "projects": {"type": "string", "default": "", "description": "Ids or paths, with spaces between."},
            "groups": {"type": "string", "default": "", "description": "All their projects, where none are named."},
            "start_date": {"type": "string", "format": "date-time"},
        },
    },
    description="Projects, branches, commits, issues, milestones, users and groups of a GitLab server.",
)


@tap.client
def client(config):
    token = burler.http.api_key(config["private_token"], header="Private-Token")
    return burler.http.Client(config["api_url"], auth=token, params={"per_page": 100})


def at(path, name):
    return f"{path}/{quote(name, safe='')}"


def later(*moments):
    """The latest of some moments; those that are None do not count."""
    return max(filter(None, moments), key=datetime.fromisoformat)


def is_since(moment, start):
    """Whether a moment is not before another one."""
    return datetime.fromisoformat(moment) >= datetime.fromisoformat(start)


@tap.partitions("projects", key="project")
def each_project(client, config):
    names = config["projects"].split()
    for group in config["groups"].split() if not names else ():
        names += [str(project["id"]) for project in client.json(at("/groups", group))["projects"]]
    for name in dict.fromkeys(names):
        yield {"project": name}


# A project is read if something has happened there since the bookmark, and so is all that belongs to it. The old tap
# noted that moment under `project_7`, at the top of its state: it counts for as long as it is the later one.
@tap.sync("projects", key_properties="id", replication_key="last_activity_at")
def projects(client, state, stream, partition):
    project = client.json(at("/projects", partition["project"]))
    if is_since(project["last_activity_at"], later(stream.bookmark, old_bookmark(state, project))):
        owner = project.pop("owner", None)  # groups' projects have none
        yield {**project, "owner_id": id_of(owner)}


def old_bookmark(state, project):
    return state.get(f"project_{project['id']}")


def id_of(thing):
    return thing and thing["id"]


@tap.sync("branches", parent="projects", key_properties=["project_id", "name"])
def branches(client, parent):
    for row in client.rows(f"/projects/{parent['id']}/repository/branches"):
        head = row.pop("commit")
        yield {**row, "project_id": parent["id"], "commit_id": id_of(head)}


# All of them: a commit may be pushed long after it was made, so no date says which are new.
@tap.sync("commits", parent="projects", key_properties="id")
def commits(client, parent):
    for row in client.rows(f"/projects/{parent['id']}/repository/commits"):
        yield {**row, "project_id": parent["id"]}


# In GitLab's own order. Sorted by `updated_at`, an issue that is changed meanwhile would move the others to the page
# before, and one of them would be missed.
@tap.sync("issues", parent="projects", key_properties="id", replication_key="updated_at")
def issues(client, parent, state, stream):
    since = later(stream.bookmark, old_bookmark(state, parent))
    for row in client.rows(f"/projects/{parent['id']}/issues", params={"scope": "all", "updated_after": since}):
        ids = {f"{role}_id": id_of(row.pop(role)) for role in ("author", "assignee", "milestone")}
        yield {**row, **ids}


@tap.sync("project_milestones", parent="projects", key_properties="id", replication_key="updated_at")
def project_milestones(client, parent, state, stream):
    since = later(stream.bookmark, old_bookmark(state, parent))
    for row in client.rows(f"/projects/{parent['id']}/milestones"):
        if is_since(row["updated_at"], since):
            yield row


@tap.sync("users", parent="projects", key_properties="id")
def users(client, parent):
    yield from client.pages(f"/projects/{parent['id']}/users")


@tap.sync("groups", key_properties="id", versions=False)
def groups(client, config):
    for name in config["groups"].split():
        group = client.json(at("/groups", name))
        yield {**group, "projects": [{"id": project["id"]} for project in group["projects"]]}


@tap.sync("group_milestones", parent="groups", key_properties="id", versions=False)
def group_milestones(client, parent, stream):
    for row in client.rows(f"/groups/{parent['id']}/milestones"):
        if is_since(row["updated_at"], stream.start_date):
            yield row


for name, schema in SCHEMAS.items():
    tap.schema(name, schema)
