"""Credentials that a function of the author's renews: every so many minutes, or once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burler.call import call, place_of, wanted
from burler.errors import DeclarationError
from burler.http.renewing import RenewedAuth, Rules
from burler.http.token_store import Token, TokenKeys, TokenStore, token_of
from burler.numbers import is_measure

if TYPE_CHECKING:
    from burler.http.client import Client

Refresh = Callable[..., Any]


def periodic(
    refresh: Refresh,
    *,
    minutes: float | None = None,
    min: float | None = None,
    seconds: float | None = None,
    config: dict[str, Any] | None = None,
    access_token_key: str | None = "access_token",
    refresh_token_key: str | None = "refresh_token",
    expires_at_key: str | None = "expires_at",
    header: str = "Authorization",
    scheme: str = "Bearer",
    limit_seconds: float = 120.0,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenewedAuth:
    """Call ``refresh`` before the first request, whenever its token is so many minutes old, and once after a 401:
    ``periodic(refresh, minutes=25)``.

    Args:
        refresh: may ask for ``config`` and ``client`` by name; the client is that of the tap without its credentials.
            It gives a token; or an object with ``access_token`` and perhaps ``expires_in`` (seconds) and
            ``refresh_token``; or None, if it has put what is new into the config itself. It runs in a thread of
            burler's, never twice at a time.
        minutes: one of this, ``min`` (the same) and ``seconds``; 25 minutes by default.
        config: the config that the client function gets: tokens are kept in it under the three keys, and it is saved
            at once. A key that is None is not kept.
        header, scheme: where the token goes; ``scheme=""`` for the token alone. A function that gives None, with no
            access token in the config, puts it into requests itself.
        limit_seconds: for one call.

    Raises:
        DeclarationError: the function asks for what it can't have, or the time is none.
    """
    period = _period(minutes, min, seconds)
    keys = TokenKeys(access_token_key, refresh_token_key, expires_at_key)
    rules = Rules(
        what=f"periodic({_name(refresh)})", header=header, scheme=scheme, period_seconds=period,
        limit_seconds=limit_seconds,
    )  # fmt: skip
    return _made(refresh, config, keys, rules, now, monotonic)


def one_time(
    refresh: Refresh,
    *,
    config: dict[str, Any] | None = None,
    access_token_key: str | None = "access_token",
    refresh_token_key: str | None = "refresh_token",
    expires_at_key: str | None = "expires_at",
    on_refusal: bool = True,
    header: str = "Authorization",
    scheme: str = "Bearer",
    limit_seconds: float = 120.0,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenewedAuth:
    """Call ``refresh`` once, before the first request, for a token that lasts as long as the run; and once more after
    a 401, unless ``on_refusal`` is False: then a 401 is an error at once.

    The other arguments are those of :func:`periodic`; ``expires_in`` counts here as well.

    Raises:
        DeclarationError: the function asks for what it can't have.
    """
    keys = TokenKeys(access_token_key, refresh_token_key, expires_at_key)
    rules = Rules(
        what=f"one_time({_name(refresh)})", header=header, scheme=scheme, on_refusal=on_refusal,
        limit_seconds=limit_seconds,
    )  # fmt: skip
    return _made(refresh, config, keys, rules, now, monotonic)


def _made(
    refresh: Refresh,
    config: dict[str, Any] | None,
    keys: TokenKeys,
    rules: Rules,
    now: Callable[[], float],
    monotonic: Callable[[], float],
) -> RenewedAuth:
    names = wanted(refresh, ("config", "client"), what=f"the refresh function of {rules.what}")
    if "config" in names and config is None:
        raise DeclarationError(f"{rules.what}: its function asks for 'config'. Give it: config=config.")
    store = TokenStore(config, keys, now)

    def renew(client: Client | None) -> Token:
        def without_credentials() -> Client:
            if client is None:
                raise DeclarationError(
                    f"{rules.what}: its function asks for 'client', and belongs to none: Client(auth=...)."
                )
            return client.with_options(auth=None)

        given = call(refresh, names, {"config": lambda: config, "client": without_credentials})
        if given is None and config is not None:
            return store.keep_own()
        if given is None:
            return Token(None)
        token = token_of(given, what=rules.what)
        store.keep(token)
        return token

    cure = f"The new token of {rules.what} was refused, too." if rules.on_refusal else ""
    return RenewedAuth(renew, store, rules, now=now, monotonic=monotonic, cure=cure)


def _period(minutes: float | None, short: float | None, seconds: float | None) -> float:
    given = [value for value in (minutes, short, seconds) if value is not None]
    if len(given) > 1:
        raise DeclarationError("periodic(): give one of minutes=, min= and seconds=.")
    period = given[0] if given else 25
    if not is_measure(period) or period <= 0:
        raise DeclarationError("periodic(): the time must be a number above 0: periodic(refresh, minutes=25).")
    return float(period if seconds is not None else 60 * period)


def _name(refresh: Refresh) -> str:
    return getattr(refresh, "__name__", type(refresh).__name__) + " " + place_of(refresh)
