"""Requests that ask for what has changed only: ETag and Last-Modified.

A resource that has not changed is answered with 304 and no body: no row is sent, no ACTIVATE_VERSION, and the STATE
carries what is known of it. What it said of itself counts for the same address, the same headers of the author's, and
the same emitted schema only: another selection of fields is a full fetch.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burler import times
from burler.context import StreamRun, running
from burler.errors import BurlerError, NotModified, PagingError
from burler.http import unfollowed
from burler.http.masking import mask_url
from burler.http.origins import joined
from burler.pages import JsonPage
from burler.source_state import ETAG, LAST_MODIFIED, POLLING, SourceStates

if TYPE_CHECKING:
    import requests

    from burler.http.paging import Source
    from burler.http.request import Request
    from burler.http.sending import Sender

_VALIDATORS = ("if-none-match", "if-modified-since")
# What does not decide what a resource holds: who asks, and how the bytes travel.
_PASSING = {"authorization", "proxy-authorization", "cookie", "user-agent", "accept-encoding", "connection"}
_PASSING.update(_VALIDATORS)
_VISIBLE = re.compile("[ -~\x80-\xff]+")
_LONGEST_ETAG = 4096  # servers refuse headers of more


def prepare(run: StreamRun, request: Request, of: str) -> Request:
    """The request with the validator of the running stream's source state, where that is declared with
    ``source_state=True``; ``of`` is its ``resource``.

    Raises:
        BurlerError: a second resource: what changes in one of several would be missed.
    """
    if not _is_plain_get(request):
        return request
    if not run.source_state.claim(of):
        raise BurlerError(
            f"stream '{run.name}': source_state=True is for a function that asks for one resource, and it asks for "
            f"another one: {_named(request)}. Leave out the option, and ask for each with "
            "client.conditional(path, source=...)."
        )
    return _asking(run.source_state, request, POLLING, of)


def judge(run: StreamRun, request: Request, of: str, response: requests.Response) -> None:
    """Note what the reply says of itself, once all rows are yielded that it gave.

    Raises:
        NotModified: it says that nothing has changed.
    """
    if not _is_get(request):
        return
    if response.status_code == 304:
        _say_so(run)
        raise NotModified(f"stream '{run.name}': {_named(request)} has not changed (304)")
    run.source_state.drop()  # a run that ends among the rows that follow must not leave word of those before
    if response.status_code == 200:
        headers = response.headers
        run.source_state.later(lambda: note(run.source_state, headers, source=POLLING, of=of))


def conditional(
    client: Source,
    request: Request,
    of: str,
    *,
    records_path: tuple[str, ...] | None,
    source: str,
    stream: StreamRun | None,
) -> Iterator[JsonPage]:
    """Ask for one resource, and give its page; nothing where it has not changed. The request is sent at once, so that
    of several resources all may be asked for before the first row is yielded.

    Raises:
        BurlerError: no stream is running here, or the stream's requests are conditional already.
    """
    run = stream or running()
    if run is None:
        raise BurlerError(
            f"client.conditional({_named(request)!r}) was called outside a running stream. Call it in a function "
            "declared with @tap.sync; in threads of your own give it the stream: stream=stream."
        )
    if run.source_state.automatic:
        raise BurlerError(
            f"stream '{run.name}': source_state=True makes client.get and client.pages conditional already. Use those, "
            "or leave the option out."
        )
    if not run.source_state.claim(of, source=source):
        raise BurlerError(
            f"stream '{run.name}': client.conditional({_named(request)!r}): its source '{source}' stands for another "
            "resource already, whose entry in the state it would replace. Name each: source='...'."
        )
    response = client.send(_asking(run.source_state, request, source, of), check=is_whole)
    if response.status_code == 304:
        _say_so(run)
        return iter(())
    if response.links.get("next"):
        raise PagingError(
            f"stream '{run.name}': client.conditional({_named(request)!r}): the reply names a next page (its header "
            "Link), and what changes there does not change the first one's ETag. Use client.pages."
        )
    run.source_state.drop(source)  # a run that ends among the rows that follow must not leave word of those before
    return _page(client, request, response, records_path, run.source_state, source, of)


def _page(
    client: Source,
    request: Request,
    response: requests.Response,
    records_path: tuple[str, ...] | None,
    states: SourceStates,
    source: str,
    of: str,
) -> Iterator[JsonPage]:
    """The page. What the reply says of itself counts once the function has ended, and only if it took the page: it may
    gather rows before it yields them."""
    yield JsonPage(response.content, records_path)
    unfollowed.answered(client, request, response, records_path)
    if response.status_code == 200:
        states.later(lambda: note(states, response.headers, source=source, of=of))


def is_whole(response: requests.Response) -> None:
    """Refuse a body that can't be all of a resource: one that is no JSON, or is empty and does not say that it is JSON
    lines. Its validator would keep it for the truth.

    Raises:
        ValueError: it is none; it is asked for again then.
    """
    from burler.http.reply import Reply

    if response.status_code == 200 and not Reply(response).is_json():
        raise ValueError("its body is no JSON" if response.content.strip() else "its body is empty")


def has_body(response: requests.Response) -> None:
    """The same where the body may be of any kind: refuse one that is empty.

    Raises:
        ValueError: it is.
    """
    if response.request.method == "GET" and not response.content:
        is_whole(response)


def resource(sender: Sender, request: Request) -> str:
    """What decides what a resource holds, as text: its address with all parameters, and the headers that the author
    gave. Credentials change while the resource does not: those of ``token`` and ``auth`` are added later, and so are
    none of it; a parameter or header of the author's own counts, whatever its name sounds like."""
    session, options = sender.session, sender.options
    params = sorted((name, str(value)) for name, value in _pairs(session.params, options.params, request.params))
    headers = sorted(
        (name.lower(), str(value))
        for name, value in _pairs(session.headers, options.headers, request.headers)
        if name.lower() not in _PASSING
    )
    body = repr((request.json, request.data)) if (request.json, request.data) != (None, None) else ""
    return f"{joined(options.base_url, request.path)}\n{params}\n{headers}\n{body}"


def note(states: SourceStates, headers: Mapping[str, str], *, source: str, of: str) -> None:
    """Save the validator of a reply: its ETag, else its Last-Modified, else none."""
    etag, modified = headers.get("ETag"), _moment(headers.get("Last-Modified"))
    if etag and _may_be_sent(etag):
        states.set(ETAG, etag, source=source, of=of)
    elif modified:
        states.set(LAST_MODIFIED, modified, source=source, of=of)
    else:
        states.forget(source)


def _asking(states: SourceStates, request: Request, source: str, of: str) -> Request:
    etag = states.get(ETAG, source=source, of=of)
    modified = states.get(LAST_MODIFIED, source=source, of=of)
    if etag is not None and not _may_be_sent(etag):
        etag = None
    header = {"If-None-Match": etag} if etag else {"If-Modified-Since": _imf(modified)} if modified else {}
    given = {name: value for name, value in header.items() if value}
    if not given:
        return request
    headers = {**(request.headers or {}), **given}
    return request.replace(headers=headers, allow_statuses=frozenset((*request.allow_statuses, 304)))


def _named(request: Request) -> str:
    """A resource for people: secrets in its address masked."""
    return request.endpoint or mask_url(request.path)


def _may_be_sent(etag: str) -> bool:
    """Whether a header can hold it: what another tool has saved may be anything."""
    return len(etag) <= _LONGEST_ETAG and etag == etag.strip() and _VISIBLE.fullmatch(etag) is not None


def _say_so(run: StreamRun) -> None:
    run.not_modified()
    run.tally.add("not_modified")


def _is_get(request: Request) -> bool:
    return request.method.upper() == "GET"


def _is_plain_get(request: Request) -> bool:
    """One that carries no validator of the author's own."""
    return _is_get(request) and not any(name.lower() in _VALIDATORS for name in request.headers or {})


def _pairs(*given: Any) -> list[tuple[str, Any]]:
    """Names and values of mappings, the later ones before the earlier; None takes one away."""
    together: dict[str, Any] = {}
    for one in given:
        together.update(one or {})
    return [(str(name), value) for name, value in together.items() if value is not None]


def _moment(text: str | None) -> str | None:
    """A Last-Modified as RFC 3339; None if it is none."""
    try:
        moment = email.utils.parsedate_to_datetime(text) if text else None
    except (TypeError, ValueError, OverflowError):
        return None
    if moment is None:
        return None
    return times.rfc3339(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))


def _imf(moment: str) -> str | None:
    """RFC 3339 as HTTP wants it (IMF-fixdate, GMT); None if it is no moment (ignored)."""
    found = times.strict_moment(moment)
    return None if found is None else email.utils.format_datetime(found, usegmt=True)
