"""OAuth 2: tokens from a refresh token, and from client credentials (RFC 6749, sections 6 and 4.4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.config.secrets import hide
from burler.errors import CredentialsError, DeclarationError
from burler.http.renewing import RenewedAuth, Rules
from burler.http.token_request import ClientAuth, TokenServer
from burler.http.token_store import Token, TokenKeys, TokenStore

if TYPE_CHECKING:
    from burler.http.client import Client

_OTHERS_SECONDS = 3.0  # for another process that has used up the refresh token, to save its next one


def oauth2_refresh(
    *,
    token_url: str,
    client_id: str | None = None,
    client_secret: str | None = None,
    refresh_token: str | None = None,
    config: dict[str, Any] | None = None,
    access_token_key: str | None = "access_token",
    refresh_token_key: str | None = "refresh_token",
    expires_at_key: str | None = "expires_at",
    scope: str | None = None,
    extra: Mapping[str, str] | None = None,
    client_auth: ClientAuth = "basic",
    headers: Mapping[str, str] | None = None,
    header: str = "Authorization",
    scheme: str = "Bearer",
    margin_seconds: float = 60.0,
    limit_seconds: float = 120.0,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenewedAuth:
    """Access tokens by a refresh token: fetched before the first request, again ``margin_seconds`` before one runs out
    (``expires_in`` of the reply), and once after a 401.

    A server may send a new refresh token with each access token (rotation). With ``config=config`` both are written
    into the config, and the config into its file, before the access token is used. An access token in the config is
    used as long as the key ``expires_at`` says that it lasts.

    Args:
        refresh_token: the first one; by default what ``config`` holds under ``refresh_token_key``.
        access_token_key: where the config keeps it; None: not at all. So for the other two.
        extra: more form fields, such as ``{"audience": "..."}``.
        client_auth: "basic": id and secret in a header, as the standard has it; "body": in the form.
        margin_seconds: half of the lifetime at the most.
        limit_seconds: for one renewal, with all its retries.

    Raises:
        DeclarationError: there is no refresh token, or an argument is wrong.
    """
    keys = TokenKeys(access_token_key, refresh_token_key, expires_at_key)
    store = TokenStore(config, keys, now, refresh_token=refresh_token)
    if not store.refresh_token:
        place = f"config key '{refresh_token_key}'" if config is not None else "refresh_token="
        raise DeclarationError(f"oauth2_refresh: {place} is empty. Log in once, and put the refresh token there.")
    server = TokenServer(
        what="oauth2_refresh", url=token_url, client_id=client_id, client_secret=client_secret, client_auth=client_auth,
        extra=extra or {}, headers=headers or {},
    )  # fmt: skip

    rules = Rules(
        what=str(server), header=header, scheme=scheme, margin_seconds=margin_seconds, limit_seconds=limit_seconds
    )
    renew = _Refreshing(server, store, scope, margin_seconds).renew
    cure = "The new token was refused, too: has this login the right to read this?"
    return RenewedAuth(renew, store, rules, now=now, monotonic=monotonic, cure=cure)


@dataclass(frozen=True, slots=True)
class _Refreshing:
    """New tokens by the refresh token that is kept; other processes with this config may use it up, or be quicker."""

    server: TokenServer
    store: TokenStore
    scope: str | None
    margin_seconds: float

    def renew(self, client: Client | None) -> Token:
        """A token that lasts: another process's, or a new one."""
        if self.store.take_over() and (saved := self._saved()) is not None:
            return saved
        try:
            return self._asked(client)
        except CredentialsError as error:
            # Another process may have used this refresh token up a moment ago, and be about to save the next one.
            if "invalid_grant" not in str(error) or not self.store.taken_over_soon(_OTHERS_SECONDS):
                raise
        return self._saved() or self._asked(client)

    def _saved(self) -> Token | None:
        """The token in the config, if it lasts long enough."""
        saved = self.store.saved()
        return saved if saved is not None and (saved.lifetime_seconds or 0) > self.margin_seconds else None

    def _asked(self, client: Client | None) -> Token:
        used = self.store.refresh_token or ""
        hide(used)
        form = {"grant_type": "refresh_token", "refresh_token": used, "scope": self.scope}
        return self.server.token(form, client, self.store)


def oauth2_client_credentials(
    *,
    token_url: str,
    client_id: str,
    client_secret: str,
    scope: str | None = None,
    config: dict[str, Any] | None = None,
    access_token_key: str | None = "access_token",
    expires_at_key: str | None = "expires_at",
    extra: Mapping[str, str] | None = None,
    client_auth: ClientAuth = "basic",
    headers: Mapping[str, str] | None = None,
    header: str = "Authorization",
    scheme: str = "Bearer",
    margin_seconds: float = 60.0,
    limit_seconds: float = 120.0,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenewedAuth:
    """Access tokens for the tap itself, by its id and secret. When they are renewed, and the arguments: as for
    :func:`oauth2_refresh`.

    With ``config=config`` a token outlives the run, for sources that allow few of them.

    Raises:
        DeclarationError: id or secret is empty, or an argument is wrong.
    """
    if not client_id or not client_secret:
        empty = "client_secret" if client_id else "client_id"
        raise DeclarationError(f"oauth2_client_credentials: {empty} is empty. Is it in the config?")
    server = TokenServer(
        what="oauth2_client_credentials", url=token_url, client_id=client_id, client_secret=client_secret,
        client_auth=client_auth, extra=extra or {}, headers=headers or {},
        cures={"invalid_grant": "Check client_id and client_secret{other}."},
    )  # fmt: skip
    store = TokenStore(config, TokenKeys(access_token_key, None, expires_at_key), now)

    def renew(client: Client | None) -> Token:
        return server.token({"grant_type": "client_credentials", "scope": scope}, client, store)

    rules = Rules(
        what=str(server), header=header, scheme=scheme, margin_seconds=margin_seconds, limit_seconds=limit_seconds
    )
    cure = "The new token was refused, too: has this client the right to read this?"
    return RenewedAuth(renew, store, rules, now=now, monotonic=monotonic, cure=cure)
