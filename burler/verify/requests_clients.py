"""A client that notes what it is asked: wrappers round the parts of it that send, on that one object alone.

Known are ``burler.http.Client`` and clients of burler's that hold one, ``requests.Session``, ``httpx.Client``, and any
object that holds one of these in an attribute. In requests and httpx what sends can be changed from outside (adapters,
transports): ours note and pass on, so retries, redirects, cookies, proxies and streamed bodies stay as they are.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burler.verify.requests_asked import Asked
from burler.verify.requests_body import Reading
from burler.verify.requests_watch import RequestWatch

if TYPE_CHECKING:
    import httpx

_DEPTH = 2  # soap.Client -> its http.Client -> the session; an author's object -> its session
_MOST_ITEMS = 100


def watch_client(client: Any, watch: RequestWatch) -> Any:
    """Let a watch see what a client asks, until ``watch.undo()``. Gives the client itself.

    One that is of no known kind stays as it is; ``watch.unknown`` has the name of its type then.
    """
    found = list(_senders(client, _DEPTH, set()))
    for sender in found:
        if _is("requests", "Session", sender):
            _watch_session(sender, watch)
        else:
            _watch_httpx(sender, watch)
    if not found and client is not None:
        name = f"{type(client).__module__}.{type(client).__qualname__}"
        if name not in watch.unknown:
            watch.unknown.append(name)
    return client


def _senders(client: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """The sessions of requests and clients of httpx in an object."""
    if id(client) in seen or isinstance(client, str | bytes | int | float | type):
        return
    seen.add(id(client))
    if _is("requests", "Session", client) or _is("httpx", "Client", client):
        yield client
    elif _is("burler.http.client", "Client", client):
        yield client.session
    elif depth:
        for part in _parts(client):
            yield from _senders(part, depth - 1, seen)


def _parts(holder: Any) -> list[Any]:
    """What an object holds, without calling anything of it."""
    if isinstance(holder, Mapping):
        return list(holder.values())[:_MOST_ITEMS]
    if isinstance(holder, list | tuple | set):
        return list(holder)[:_MOST_ITEMS]
    held = [getattr(holder, "__self__", None)]  # a method of a session: "return session.get"
    held += list(getattr(holder, "__dict__", {}).values())[:_MOST_ITEMS]
    for kind in type(holder).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(AttributeError):
                held.append(object.__getattribute__(holder, name))
    return held


def _is(module: str, name: str, thing: Any) -> bool:
    """Whether something is of a class of a module that may not be loaded: then it is not."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(thing, kind)


# requests


def _watch_session(session: Any, watch: RequestWatch) -> None:
    adapters = session.adapters
    for prefix, adapter in list(adapters.items()):
        if isinstance(adapter, _Adapter) and object.__getattribute__(adapter, "_watch") is watch:
            continue
        noting = adapters[prefix] = _Adapter(adapter, watch)
        watch.to_undo(functools.partial(_back, adapters, prefix, noting, adapter))


def _back(adapters: Any, prefix: str, noting: Any, adapter: Any) -> None:
    if adapters.get(prefix) is noting:  # somebody may have mounted another one since
        adapters[prefix] = adapter


def _itself(adapter: Any) -> Any:
    return adapter


class _Adapter:
    """An adapter of requests that notes, and passes on to another one. In all else it is that one."""

    def __init__(self, adapter: Any, watch: RequestWatch) -> None:
        object.__setattr__(self, "_adapter", adapter)
        object.__setattr__(self, "_watch", watch)

    def send(self, request: Any, *args: Any, **settings: Any) -> Any:
        """Send, and note it."""
        adapter, watch = object.__getattribute__(self, "_adapter"), object.__getattribute__(self, "_watch")
        url = str(request.url or "")
        if not url.lower().startswith(("http://", "https://")):
            return adapter.send(request, *args, **settings)
        given = dict(zip(("stream", "timeout", "verify", "cert", "proxies"), args, strict=False), **settings)
        timeout = _has_timeout(given.get("timeout"), adapter)
        verified = given.get("verify", True) is not False
        headers = {_text(name): _text(value) for name, value in request.headers.items()}
        asked = Asked(_text(request.method or "GET"), url, headers, request.body, timeout, verified)
        going = watch.begin(asked)
        try:
            reply = adapter.send(request, *args, **settings)
        except BaseException:
            watch.lost(going)
            raise
        reading = watch.answered(going, reply.status_code, reply.headers)
        _read_along(reply, reading)
        if getattr(reply, "connection", None) is adapter:  # by which requests asks again with a digest
            reply.connection = self
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_adapter"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_adapter"), name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (object.__getattribute__(self, "_adapter"),)

    def __repr__(self) -> str:
        return repr(object.__getattribute__(self, "_adapter"))

    @property  # type: ignore[misc]  # isinstance(adapter, HTTPAdapter) is to be what it was
    def __class__(self) -> Any:
        return type(object.__getattribute__(self, "_adapter"))


def _text(text: Any) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else str(text)


def _has_timeout(timeout: Any, adapter: Any) -> bool | None:
    """Whether a request waits no longer than so long. An adapter with a ``send`` of its own may have put one in: then
    nobody knows."""
    if isinstance(timeout, tuple):
        timeout = timeout[-1] if timeout else None
    elif hasattr(timeout, "total"):  # urllib3's
        parts = (timeout.total, getattr(timeout, "_read", None))
        timeout = next((one for one in parts if isinstance(one, int | float)), None)
    if timeout is not None:
        return True
    from requests.adapters import HTTPAdapter

    return False if getattr(type(adapter), "send", None) is HTTPAdapter.send else None


def _read_along(reply: Any, reading: Reading) -> None:
    """See the body of a reply of requests while somebody reads it."""
    if isinstance(reply._content, bytes):  # of an adapter that has it already
        reading.feed(reply._content)
        return reading.end(unpacked=True)
    raw = reply.raw
    stream = getattr(type(raw), "stream", None)
    if stream is None:
        return reading.unseen()
    whose = weakref.ref(raw)  # no circle: an unread reply gives its connection back as soon as nobody holds it

    def noting(amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:
        raw = whose()
        unpacked = getattr(raw, "decode_content", True) if decode_content is None else decode_content
        return _passed_on(stream(raw, amt, decode_content), reading, unpacked=bool(unpacked))

    try:
        raw.stream = noting
    except AttributeError:  # an object without room for it stays as it is
        reading.unseen()
    return None


def _passed_on(pieces: Iterator[bytes], reading: Reading, *, unpacked: bool) -> Iterator[bytes]:
    try:
        for piece in pieces:
            reading.feed(piece)
            yield piece
    except GeneratorExit:
        reading.left()
        raise
    except BaseException:
        reading.broke()
        raise
    reading.end(unpacked=unpacked)


# httpx


def _watch_httpx(client: Any, watch: RequestWatch) -> None:
    def put(transport: Any) -> Any:
        known = isinstance(transport, _transport_type()) and transport.watch is watch
        return transport if known else _transport_type()(transport, watch)

    whole, mounts = client._transport, dict(client._mounts)
    noting = {pattern: one and put(one) for pattern, one in mounts.items()}  # None: the usual way

    def back() -> None:
        client._transport = whole
        client._mounts.update({pattern: one for pattern, one in mounts.items() if pattern in client._mounts})

    client._transport = put(whole)
    client._mounts.update(noting)
    watch.to_undo(back)


@functools.cache
def _transport_type() -> Any:
    import httpx

    noted = _stream_type()

    class Transport(httpx.BaseTransport):
        """A transport that notes, and passes on to another one."""

        def __init__(self, transport: httpx.BaseTransport, watch: RequestWatch) -> None:
            self.transport = transport
            self.watch = watch

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            going = self.watch.begin(_asked_of(request))
            try:
                reply = self.transport.handle_request(request)
            except BaseException:
                self.watch.lost(going)
                raise
            reading = self.watch.answered(going, reply.status_code, reply.headers)
            if hasattr(reply, "_content"):
                reading.feed(reply.content)
                reading.end(unpacked=True)
            else:
                reply.stream = noted(reply.stream, reading)
            return reply

        def close(self) -> None:
            self.transport.close()

        def __enter__(self) -> Any:
            self.transport.__enter__()
            return self

        def __exit__(self, *error: Any) -> None:
            self.transport.__exit__(*error)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["transport"], name)

    return Transport


@functools.cache
def _stream_type() -> Any:
    import httpx

    class Stream(httpx.SyncByteStream):
        """A body that is noted while it is read, packed as it came."""

        def __init__(self, stream: Any, reading: Reading) -> None:
            self.stream = stream
            self.reading = reading

        def __iter__(self) -> Iterator[bytes]:
            return _passed_on(self.stream, self.reading, unpacked=False)

        def close(self) -> None:
            self.reading.left()
            self.stream.close()

    return Stream


def _asked_of(request: httpx.Request) -> Asked:
    timeouts = request.extensions.get("timeout") or {}
    # What was sent from an iterator is gone, or can't be had without sending it.
    body = request.content if hasattr(request, "_content") else request.stream
    headers = dict(request.headers.items())
    return Asked(request.method, str(request.url), headers, body or None, timeouts.get("read") is not None)
