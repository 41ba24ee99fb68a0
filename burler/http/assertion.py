"""Tokens by a signed statement (RFC 7523): the tap signs a JWT with its private key and gets an access token for it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.config.secrets import hide
from burler.errors import DeclarationError
from burler.extras import require
from burler.http.renewing import RenewedAuth, Rules
from burler.http.token_request import ClientAuth, TokenServer
from burler.http.token_store import Token, TokenKeys, TokenStore

if TYPE_CHECKING:
    from burler.http.client import Client

_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LATE_SECONDS = 10  # a server whose clock is behind refuses what was made "in the future"


@dataclass(frozen=True, slots=True)
class _Signer:
    """What is stated, and the key that signs it."""

    key: str = field(repr=False)
    algorithm: str
    claims: Mapping[str, Any] = field(repr=False)
    headers: Mapping[str, str]
    lifetime_seconds: float
    now: Callable[[], float]

    def signed(self) -> str:
        """A new JWT; it is hidden from then on, since whoever has it can log in.

        Raises:
            DeclarationError: the key is none for this algorithm.
        """
        jwt = require("jwt", extra="jwt", needed_for="burler.http.jwt_assertion")
        begin = int(self.now()) - _LATE_SECONDS
        claims = {
            "iat": begin, "exp": begin + _LATE_SECONDS + int(self.lifetime_seconds), "jti": str(uuid.uuid4()),
            **self.claims,
        }  # fmt: skip
        try:
            text = str(jwt.encode(claims, self.key, algorithm=self.algorithm, headers=dict(self.headers) or None))
        except Exception as error:  # of three packages; none of their texts may quote the key here
            raise DeclarationError(
                f"jwt_assertion: the key can't sign with {self.algorithm} ({type(error).__name__}). "
                "It takes a private key in PEM form, whole, with its BEGIN and END lines; for HS256 a shared secret."
            ) from None
        hide(text)
        return text


def jwt_assertion(
    *,
    key: str,
    issuer: str,
    token_url: str | None = None,
    subject: str | None = None,
    audience: str | None = None,
    scope: str | None = None,
    algorithm: str = "RS256",
    key_id: str | None = None,
    claims: Mapping[str, Any] | None = None,
    lifetime_seconds: float = 300.0,
    config: dict[str, Any] | None = None,
    access_token_key: str | None = "access_token",
    expires_at_key: str | None = "expires_at",
    client_id: str | None = None,
    client_secret: str | None = None,
    client_auth: ClientAuth = "body",
    extra: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    header: str = "Authorization",
    scheme: str = "Bearer",
    margin_seconds: float = 60.0,
    limit_seconds: float = 120.0,
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> RenewedAuth:
    """Access tokens by a statement that a private key signs (service accounts), over PyJWT (extra ``jwt``). When they
    are renewed, and the arguments that are not named here: as for :func:`oauth2_refresh`.

    Args:
        key: the private key as PEM text, or the shared secret of HS256. ``\\n`` written as two signs is understood, as
            keys look in environment variables.
        issuer: claim ``iss``; ``subject`` is ``sub``, ``audience`` is ``aud`` (by default ``token_url``).
        token_url: None sends the statement itself as the token, for sources that have it so.
        scope: as form field and as claim, since servers want the one or the other.
        algorithm: "RS256", "ES256", "HS256" or another one of PyJWT's.
        key_id: header ``kid``.
        claims: more claims, or others than these.
        lifetime_seconds: of the statement.

    Raises:
        DeclarationError: key or issuer is empty, or the key does not fit the algorithm.
        MissingExtra: PyJWT is not installed.
    """
    require("jwt", extra="jwt", needed_for="burler.http.jwt_assertion")
    for name, text in (("key", key), ("issuer", issuer)):
        if not isinstance(text, str) or not text:
            raise DeclarationError(f"jwt_assertion: {name} is empty. Is it in the config?")
    said = {"iss": issuer, "sub": subject, "aud": audience or token_url, "scope": scope, **(claims or {})}
    signer = _Signer(
        _whole(key), algorithm, {name: value for name, value in said.items() if value is not None},
        {"kid": key_id} if key_id else {}, lifetime_seconds, now,
    )  # fmt: skip
    signer.signed()  # a wrong key shows now, and not after a request
    store = TokenStore(config, TokenKeys(access_token_key, None, expires_at_key), now)
    what = "jwt_assertion"
    server: TokenServer | None = None
    if token_url is not None:
        server = TokenServer(
            what=what, url=token_url, client_id=client_id, client_secret=client_secret, client_auth=client_auth,
            extra=extra or {}, headers=headers or {},
            cures={"invalid_grant": "Check issuer, subject, audience, the key, and the clock of this machine."},
        )  # fmt: skip
        what = str(server)

    def renew(client: Client | None) -> Token:
        statement = signer.signed()
        if server is None:
            return Token(statement, lifetime_seconds)
        return server.token({"grant_type": _GRANT, "assertion": statement, "scope": scope}, client, store)

    rules = Rules(what=what, header=header, scheme=scheme, margin_seconds=margin_seconds, limit_seconds=limit_seconds)
    cure = "The new token was refused, too: has this account the right to read this?"
    return RenewedAuth(renew, store, rules, now=now, monotonic=monotonic, cure=cure)


def _whole(key: str) -> str:
    """A key with line ends where it has ``\\n``; it is hidden as it came and as it is used."""
    whole = key.replace("\\n", "\n") if key.lstrip().startswith("-----BEGIN") else key
    hide(key)
    hide(whole)
    return whole
