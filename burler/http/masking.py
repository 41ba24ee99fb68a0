"""URLs and bodies as errors and logs may show them."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from burler.config.secrets import MASKED, looks_secret
from burler.config.watched import clean

_NAMES = frozenset({"key", "code", "sig", "signature", "jwt", "assertion", "otp", "pw", "sid", "ticket", "hmac"})
_MORE = re.compile(r"session([_-]?id)?|awsaccesskeyid|x-(amz|goog)-(signature|credential)", re.IGNORECASE)
_SHORT = 20  # characters of a code that tells an error
_USER_INFO = re.compile(r"(?<=//)[^/?#@\s]*(?:@[^/?#@\s]*)*@")
_JSON_FIELD = re.compile(r'"((?:[^"\\]|\\.){1,80})"(\s*:\s*)"((?:[^"\\]|\\.)*)("|$)')
_FORM_FIELD = re.compile(r"\b([\w.\-]{1,80})=([^&\s\"'<>]+)")


def is_secret_name(name: str) -> bool:
    """Whether a parameter, a header or a field of this name holds what nobody should see."""
    return looks_secret(name) or name.lower() in _NAMES or bool(_MORE.fullmatch(name))


def mask_url(url: str) -> str:
    """A URL for errors and logs: ``***`` in place of its user and password, of the values of parameters whose names
    look secret, and of all secrets that are known. The fragment is left out."""
    whole, _, query = url.partition("#")[0].partition("?")
    whole = _USER_INFO.sub(f"{MASKED}@", whole, count=1)
    if query:
        whole += "?" + "&".join(_masked_pair(pair) for pair in query.split("&"))
    return clean(whole)


def _masked_pair(pair: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}={MASKED}" if equals and value and is_secret_name(unquote_plus(name)) else pair


def mask_text(text: str) -> str:
    """A reply's text with ``***`` for fields of JSON and of forms whose names look secret, and all known secrets.

    In replies ``code`` and ``key`` say most often what is wrong, and where: they are masked if their value is long and
    has no spaces.
    """
    text = _JSON_FIELD.sub(
        lambda found: f'"{found[1]}"{found[2]}"{MASKED}"' if _hides(found[1], found[3]) else found[0], text
    )
    text = _FORM_FIELD.sub(lambda found: f"{found[1]}={MASKED}" if _hides(found[1], found[2]) else found[0], text)
    return clean(text)


def _hides(name: str, value: str) -> bool:
    return looks_secret(name) or (is_secret_name(name) and len(value) > _SHORT and not re.search(r"\s", value))
