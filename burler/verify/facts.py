"""The facts of a run, from what looked at its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.config.secrets import masked
from burler.spec.messages import MessageCheck
from burler.spec.stream import StreamCheck
from burler.verify.result import RunFacts, StreamFacts

Requests = Mapping[str, Mapping[str, dict[str, Any]]]
_SHOWN = 200


def facts_of(
    check: MessageCheck,
    name: str,
    *,
    ended: str,
    exit_code: int | None,
    seconds: float,
    requests: Requests | None = None,
) -> RunFacts:
    """What one run did.

    Args:
        requests: of each stream, as ``RequestWatch`` gives them; those of no stream stand under "".
    """
    run = RunFacts(name, ended, exit_code, round(seconds, 3), check.lines)
    for stream, one in check.streams.items():
        run.streams[stream] = _stream(one, check.states.last, dict((requests or {}).get(stream, {})))
    for stream, asked in (requests or {}).items():
        if stream not in check.streams and asked:
            name = stream or "(no stream)"
            run.streams[name] = StreamFacts(name, requests=dict(asked))
    return run


def _stream(check: StreamCheck, last_state: Any, requests: dict[str, dict[str, Any]]) -> StreamFacts:
    facts = StreamFacts(check.name, requests=requests)
    declared = check.declared
    method = declared.replication_method if declared is not None else None
    facts.replication_method = method or ("INCREMENTAL" if check.replication_key else None)
    facts.key_properties, facts.replication_key = list(check.keys), check.replication_key
    facts.rows, facts.bytes, facts.seconds = check.rows, check.bytes, round(check.read_seconds, 3)
    watch = check.bookmarks
    if watch is not None:
        facts.states = watch.states
        found = watch.facts(last_state, check.read_seconds)
        facts.bookmark = {key: _plain(value) for key, value in found.items()}
        facts.series = [[at, rows, _plain(value)] for at, rows, value in watch.series]
        facts.order = watch.order.to_json(watch.key) if watch.order.rows else {}
        for flip in facts.order.get("first_flips", ()):
            flip.update({key: _plain(flip[key]) for key in ("before", "value")})
    facts.fields = check.fields()
    facts.patch = check.patch.schema(check.schema or {})
    return facts


def _plain(value: Any) -> Any:
    """A value of the source that may be shown."""
    return masked(value)[:_SHOWN] if isinstance(value, str) else value
