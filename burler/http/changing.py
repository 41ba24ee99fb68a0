"""Another client on the same connections."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from burler.errors import DeclarationError
from burler.http.limits import Limiter
from burler.http.options import Options
from burler.http.wire import with_cookies_of_its_own
from burler.paths import path_of
from burler.suggest import did_you_mean

if TYPE_CHECKING:
    from burler.http.client import Client

SomeClient = TypeVar("SomeClient", bound="Client")

_LIMITS = ("requests_per_second", "requests_per_minute")
_FIELDS = tuple(one.name for one in dataclasses.fields(Options) if one.name != "of_session")
_OTHERS = ("token", "auth", "records_path")


def bare(client: SomeClient) -> SomeClient:
    """A client on the same connections for a server of others, such as a token server: it gets no credentials, headers,
    parameters and cookies of the client or its session, and has limits of its own. (The client's may be waited for by
    all workers, and these for a token.)"""
    nothing: dict[str, Any] = {"base_url": "", "auth": None, "headers": {}, "params": {}}
    other = changed(client, {**nothing, **dict.fromkeys(_LIMITS)})
    sender = other._sender
    sender.options = dataclasses.replace(sender.options, of_session=False)
    return other


def changed(client: SomeClient, changes: dict[str, Any]) -> SomeClient:
    """See :meth:`burler.http.Client.with_options`."""
    from burler.http.client import auth_of

    for name in changes:
        if name not in (*_FIELDS, *_OTHERS):
            hint = did_you_mean(name, (*_FIELDS, *_OTHERS))
            raise DeclarationError(f"burler.http.Client.with_options can't change '{name}'.{hint}")
    sender = client._sender
    options = sender.options
    fields = {name: value for name, value in changes.items() if name in _FIELDS}
    for name in ("headers", "params"):
        if name in fields:
            fields[name] = fields[name] or {}
    options = dataclasses.replace(options, **fields)
    limiter = sender.limiter
    if any(name in changes for name in _LIMITS):
        limiter = Limiter(options.requests_per_second, options.requests_per_minute)
    auth = client.auth
    if "token" in changes or "auth" in changes:  # auth=None: no credentials
        auth = auth_of(changes.get("token"), changes.get("auth"))
    other = copy.copy(client)
    other._owns_session = False
    if "records_path" in changes:
        path = changes["records_path"]
        other.records_path = None if path is None else path_of(path)
    session = sender.session
    if auth is not None and auth is not client.auth:
        session = with_cookies_of_its_own(session)
    other._connect(session, options, auth, limiter, sender.clock)
    return other
