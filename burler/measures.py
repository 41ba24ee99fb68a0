"""Every METRIC line and every count of a stream, in tables that the docs are made from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """What METRIC lines of one name are.

    Attributes:
        name: ``record_count``.
        kind: "counter" or "timer" (seconds).
        value: what the number is.
        tags: what each tag is, by its name.
        comes: when there is such a line.
    """

    name: str
    kind: str
    value: str
    tags: dict[str, str]
    comes: str


@dataclass(frozen=True, slots=True)
class Count:
    """What is counted while a stream's source is read: a name in ``counts`` of a report.

    Attributes:
        about: of what.
        reason: what the reasons are; empty where there are none.
    """

    name: str
    about: str
    reason: str = ""


RECORD_COUNT = Measure(
    "record_count",
    "counter",
    "rows",
    {"endpoint": "the stream"},
    "at the end of each stream; in a tail every `metrics_interval_seconds`, the rows since the last one; also of "
    "`burler lake write` and `burler lake read`",
)
JOB_DURATION = Measure(
    "job_duration",
    "timer",
    "seconds",
    {
        "job_type": "`stream` or `sync`",
        "stream": "its name, of a stream",
        "status": "`succeeded`, `failed`, `stopped`; of a stream also `unfinished`, where something else ended the run",
    },
    "at the end of each stream, and of the run",
)
HTTP_REQUEST_DURATION = Measure(
    "http_request_duration",
    "timer",
    "seconds, until the whole reply was there",
    {
        "endpoint": "the path, or its name for stubs (`/contacts/{id}/notes`)",
        "http_status_code": "where a reply came",
        "status": "`succeeded`, `failed`",
    },
    "behind each request of a `burler.http.Client`, with the setting `metrics: requests`; not in a tail, where it "
    "would be a line for each request for ever",
)
MEASURES = (RECORD_COUNT, JOB_DURATION, HTTP_REQUEST_DURATION)

COUNTS = (
    Count("requests", "HTTP requests that were sent, with those that were tried again"),
    Count("bytes", "bytes of replies, unpacked; or of files, as they lie there"),
    Count("retries", "requests that were sent once more", "the status (`429`, `503`), or `no answer` and the like"),
    Count("refreshes", "credentials that were renewed"),
    Count("not_modified", "304: sources that had nothing new"),
    Count("graphql_errors", "errors in GraphQL replies", "their codes"),
    Count("queries", "SQL queries"),
    Count("files", "files that were read"),
    Count("files_skipped", "files that were left out", "why: not settled, empty, ..."),
    Count(
        "passed_files",
        "files that went out as they are, [in BATCH messages](batch.md#files-that-the-source-has-made)",
    ),
    Count("uncounted_files", "those of them whose rows nobody counted"),
    Count("repeated", "rows of a tail that were dropped, since they were out before"),
)


def lines_table() -> str:
    """METRIC lines as a Markdown table."""
    rows = ["| metric | type | value | tags | comes |", "|---|---|---|---|---|"]
    for each in MEASURES:
        tags = "; ".join(f"`{name}`: {what}" for name, what in each.tags.items())
        rows.append(f"| `{each.name}` | {each.kind} | {each.value} | {tags} | {each.comes} |")
    return "\n".join(rows) + "\n"


def counts_table() -> str:
    """Counts of streams as a Markdown table."""
    rows = ["| count | of what | by reason |", "|---|---|---|"]
    rows += [f"| `{each.name}` | {each.about} | {each.reason} |".replace("|  |", "| |") for each in COUNTS]
    return "\n".join(rows) + "\n"
