"""What ``burler verify`` finds in taps that others wrote, each held against the source and what the tap does.

(rule, stream, field) -> what stands behind it. A finding that is not here is new: look at it before it is added.
"""

from __future__ import annotations

from collections.abc import Iterable

Key = tuple[str, str, str]

_PIPE = "true: `head -1` behind it shows the traceback of BrokenPipeError"
_TOP = "true: main logs the exception and raises it again, so the traceback follows"


def _each(code: str, stream: str, fields: Iterable[str], verdict: str) -> dict[Key, str]:
    return {(code, stream, field): verdict for field in fields}


VERDICTS: dict[str, dict[Key, str]] = {
    "tap-rest-api-msdk": {
        ("P626", "", ""): "true, in four runs of six: `head -1` behind it shows it, or exit code 1 without a word",
    },
    "meltanolabs-tap-postgres": {
        (
            "P612",
            "",
            "",
        ): "true: __init__ asserts that there is a host; by hand a traceback with {} and without a config",
        (
            "C124",
            "shop-orders",
            "anything",
        ): "true: of jsonb it makes a field of six types; a target has to make text of it",
        ("R504", "shop-orders", "anything"): "true: the column holds objects alone",
    },
    "pipelinewise-tap-s3-csv": {
        ("P627", "", ""): "true: main asks for args.properties alone; with --catalog it ends at once, exit code 0",
        (
            "B312",
            "cities",
            "",
        ): "true: s3.py takes files with `modified_since < last_modified`; S3 counts seconds, so of two files of one "
        "second the second is skipped by a run that broke off between them",
        ("P612", "", ""): _TOP,
        ("C111", "cities", "id"): 'true: each column is {"type": ["null", "string"]}, the key as well',
        ("P626", "", ""): _PIPE,
        ("R503", "cities", "_sdc_extra"): "true: it comes with rows that have more cells than the head line, here none",
    },
    "tap-gitlab 0.5": {
        ("P613", "", ""): "true: it logs 'GET .../projects/1?private_token=...' for each request",
        ("P614", "", ""): "true: it knows --discover from singer-python and syncs all the same",
        ("P602", "branches", ""): "true: it looks at no catalog",
        # Whatever else it sent before it was stopped.
        **{
            ("P602", stream, ""): "true: it looks at no catalog"
            for stream in ("commits", "issues", "milestones", "users", "projects")
        },
        ("M208", "users", "id"): "true: users are asked for by project, and come once for each they are in",
        ("P612", "", ""): _TOP,
        **{
            ("C111", stream, "id"): 'true: schemas/*.json say "id": {"type": ["null", "integer"]}'
            for stream in ("group_milestones", "groups", "project_milestones", "projects")
        },
        (
            "R501",
            "projects",
            "users",
        ): "true: sync_users puts project['users'] into the row; projects.json has no such field",
        ("P626", "", ""): _PIPE,
        **_each(
            "R503",
            "commits",
            ["allow_failure", "author_email", "author_name", "committer_email", "committer_name", "message"],
            "true: the server of the test sends none of them",
        ),
        ("M226", "group_milestones", ""): "true: no group is in the config, and their SCHEMAs come in any case",
        ("M226", "groups", ""): "true: no group is in the config, and their SCHEMAs come in any case",
    },
    "tap-rest-api": {
        ("B314", "", ""): "true: get_streams_to_sync raises where currently_syncing is none of its streams",
        ("P602", "", ""): "arguable: it fails on purpose where nothing is selected",
        (
            "B309",
            "",
            "",
        ): "true: sync sets currently_syncing in a copy; given a state that has it, the last STATE has it still",
        ("P612", "", ""): _TOP,
        ("C113", "events", ""): "true: sync_rows is called without key_properties, so they are always []",
        ("P626", "", ""): _PIPE,
    },
    "pipelinewise-tap-postgres": {
        ("P612", "", ""): _TOP,
        (
            "B311",
            "shop-orders",
            "",
        ): "true: incremental.py selects without ORDER BY at first, and keeps the key of the last row, here the least",
        ("O402", "shop-orders", "made_at"): "true: the same; where the last row has the greatest key it goes well",
        ("P626", "", ""): _PIPE,
    },
    "tap-jsonl": {
        (
            "B311",
            "days",
            "",
        ): "true: process_file looks for the bookmark under '_sdc_last_modified', the SDK keeps it under "
        "'replication_key_value'; resumed, each row comes even twice",
        ("C111", "days", "id"): "true: _schema_for_kinds makes every field nullable",
    },
    "tap-csv-folder": {
        (
            "P609",
            "",
            "",
        ): "true: CSVStream.primary_keys is a property without a setter, and the SDK sets it from a catalog: "
        "with --catalog the tap does not run at all",
        ("P612", "", ""): "true: without 'path' it ends in KeyError",
    },
    "tap-dbf": {
        ("M217", "parts", "MADE"): "true: a date field (D) is declared date-time, and comes as '2024-05-01'",
        ("C113", "parts", ""): "true: the table has no autoincrement field, and there is no other key",
    },
}
