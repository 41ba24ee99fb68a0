"""tap-git: the history of any local git repository as Singer streams. It uses no network."""

import burler
from burler.errors import ConfigError

from .gitrepo import FIGURES, GitError, Repo
from .position import Position

tap = burler.tap(
    "tap-git",
    config_spec=["repo"],
    version="1.1.0",
    description="Commits, file changes, refs and authors of a git repo.",
)


@tap.client
def repository(config):
    try:
        return Repo(config["repo"])
    except GitError as error:
        raise ConfigError(f"config 'repo': {error}") from None


@tap.sync(
    "commits", key_properties="sha", replication_key="committed_at", bookmark_strategy="every_n(1000)", order="none"
)
def commits(client, stream, state):
    position = Position(stream, client, state)
    figures = not stream.schema.get("properties", {}).keys().isdisjoint(FIGURES)
    changes = stream.selected("file_changes")
    for commit in client.commits(
        position.tips, position.known, reopen=position.reopen, figures=figures, changes=changes
    ):
        yield commit
        position.passed(commit)
    position.finish()


@tap.sync("file_changes", parent="commits", key_properties=["sha", "path"])
def file_changes(client, parent):
    return client.changes(parent["sha"])


@tap.sync("refs", key_properties="name")
def refs(client):
    return client.refs()


@tap.sync("authors", key_properties=["name", "email"])
def authors(client):
    return client.authors()


for name in ("commits", "file_changes", "refs", "authors"):
    tap.schema(name, burler.json_file(f"schemas/{name}.json"))
