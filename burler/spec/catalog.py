"""The rules of catalogs, for the catalog or the SCHEMA messages of any tap.

    from burler.spec.catalog import check_catalog

    for finding in check_catalog(json.load(open("catalog.json"))):
        print(finding.code, finding.stream, finding.path, finding.message)

What comes in is not trusted: each wrong kind of value is a finding, never a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.spec.catalog_keys import (
    catalog_keys,
    check_automatic,
    check_keys,
    check_replication,
    check_replication_keys,
)
from burler.spec.catalog_metadata import check_inclusion, check_metadata, read_metadata, unsupported
from burler.spec.catalog_names import check_field_names, check_stream_name, check_streams_differ
from burler.spec.catalog_refs import check_references
from burler.spec.catalog_types import check_top, check_type, check_values
from burler.spec.catalog_valid import check_valid
from burler.spec.catalog_walk import spots
from burler.spec.catalog_words import Reporter, said, texts
from burler.spec.finding import Findings
from burler.spec.table import RULES


def check_catalog(
    catalog: Any, *, config_tap_name: str | None = None, run: str = "discovery", findings: Findings | None = None
) -> Findings:
    """What is wrong with a catalog.

    Args:
        catalog: a JSON value: what the tap printed, or what a user made of it. It is not changed.
        config_tap_name: the tap's name: metadata keys that begin with it and a dot are its own. Those that begin with
            "tap-" and a name are always taken for that.
        run: see ``Findings.run``.
        findings: where to report to; ``run`` does not count then.
    """
    findings = Findings(RULES, run=run) if findings is None else findings
    streams = catalog.get("streams") if isinstance(catalog, Mapping) else None
    if not isinstance(streams, list | tuple):
        what = f"'streams' is {said(streams)}" if isinstance(catalog, Mapping) else f"it is {said(catalog)}"
        if isinstance(catalog, Mapping) and "streams" not in catalog:
            what = "'streams' is missing"
        findings.add("C101", f'a catalog is an object {{"streams": [...]}}, but {what}')
        return findings
    if not streams:
        findings.add("C128", "the catalog has no streams")
    named: list[tuple[Reporter, str, str, tuple[str, ...]]] = []
    for position, entry in enumerate(streams):
        report = _reporter(entry, findings, f"streams[{position}]")
        if isinstance(entry, Mapping):
            lies = _check_entry(report, entry, config_tap_name)
            id_, name = entry.get("tap_stream_id"), report.stream
            if name is not None:
                named.append((report, id_ if isinstance(id_, str) and id_ else name, name, lies))
    check_streams_differ(named)
    return findings


def _reporter(entry: Any, findings: Findings, place: str) -> Reporter:
    """The reporter of an entry, with the name that the stream's messages bear; what is no entry is C101."""
    if not isinstance(entry, Mapping):
        findings.add("C101", f"a stream is an object, not {said(entry)}", place=place)
        return Reporter(findings, None, place)
    given = [entry.get(word) for word in ("stream_alias", "stream", "tap_stream_id")]
    name = next((one for one in given if isinstance(one, str) and one), None)
    report = Reporter(findings, "" if name is None and "" in given else name, place)  # nameless, yet not unsaid
    missing = [word for word in ("tap_stream_id", "stream", "schema") if word not in entry]
    if missing:
        report.add("C101", f"the stream has no {' and no '.join(missing)}")
    for word in ("tap_stream_id", "stream"):
        if word in entry and not isinstance(entry[word], str):
            report.add("C101", f"'{word}' is {said(entry[word])}, no text")
    return report


def _check_entry(report: Reporter, entry: Mapping[str, Any], tap_name: str | None) -> tuple[str, ...]:
    """Check one stream. Gives the schema and database that its table lies in, as far as it says."""
    schema = entry.get("schema")
    if report.stream is not None:
        empty = not entry.get("stream_alias") and entry.get("stream") == ""
        check_stream_name(report, "" if empty else report.stream)
    compiled = read_metadata(report, entry.get("metadata"), schema, spots(schema))
    check_metadata(report, compiled, tap_name=tap_name)
    keys = catalog_keys(report, entry, compiled)
    check_replication(report, entry, compiled)
    if "schema" in entry:
        _check_schema(report, schema, without=frozenset(unsupported(schema, compiled)))
    if isinstance(schema, Mapping):
        check_inclusion(report, schema, compiled)
        if keys is not None:
            check_keys(report, schema, keys)
            check_automatic(report, schema, keys, compiled)
    lies = [compiled.get((), {}).get(word) for word in ("schema-name", "database-name")]
    return tuple(one if isinstance(one, str) else "" for one in lies)


def _check_schema(report: Reporter, schema: Any, *, without: frozenset[str] = frozenset()) -> None:
    if not isinstance(schema, Mapping):
        report.add("C107", f"the schema is {said(schema)}, no object")
        return
    check_top(report, schema)
    places = list(spots(schema, without=without))
    for spot in places:
        check_valid(report, spot)
        check_type(report, spot)
        check_values(report, spot)
        check_field_names(report, spot)
    check_references(report, schema, places)


def check_schema_message(message: Mapping[str, Any], findings: Findings, *, place: str) -> None:
    """What is wrong with the schema, the name and the keys of a SCHEMA message.

    Members that are missing or of a wrong kind are the business of the rules of messages (area M).

    Args:
        message: the SCHEMA message, a JSON object.
        place: where it stands: "line 12".
    """
    stream = message.get("stream")
    report = Reporter(findings, stream if isinstance(stream, str) else None, place)
    if isinstance(stream, str):
        check_stream_name(report, stream)
    schema = message.get("schema")
    if not isinstance(schema, Mapping):
        if schema is not None:
            report.add("C107", f"the schema is {said(schema)}, no object")
        return
    _check_schema(report, schema)
    keys = texts(message.get("key_properties"))
    if keys is not None:
        check_keys(report, schema, keys)
    check_replication_keys(report, schema, texts(message.get("bookmark_properties")) or [])
