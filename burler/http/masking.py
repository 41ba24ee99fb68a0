"""URLs and bodies as errors and logs may show them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from burler.config.secrets import MASKED, masked, may_be_secret, surely_secret, without_password

_NAMES = frozenset({"code", "assertion", "pw", "sid", "ticket"})  # of requests and replies, beside those of configs
_SESSION = re.compile(r"[a-z]{0,12}session(id)?|[a-z]{0,12}sessid", re.IGNORECASE)
_SHORTEST_GIVEN = 8
_SHORT = 20  # characters of a code that tells an error
_PATH_PARAMETER = re.compile(r"(?<=;)([^;=/]{1,80})=([^;/]+)")
_USER_INFO = re.compile(r"(?<=//)[^/?#@\s]*(?:@[^/?#@\s]*)*@")
_JSON_FIELD = re.compile(r'"((?:[^"\\]|\\.){1,80})"(\s*:\s*)"((?:[^"\\]|\\.)*)("|\\?$)')
_JSON_NUMBER = re.compile(r'"((?:[^"\\]|\\.){1,80})"(\s*:\s*)(-?\d{5,40})\b')
_XML_FIELD = re.compile(r"<([\w.:\-]{1,80})>([^<>]{4,2000})(?=<|$)")
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)[\w.~+/=\-]{8,}", re.IGNORECASE)
_FORM_FIELD = re.compile(r"\b([\w.\-]{1,80})=([^&\s\"'<>]+)")


def is_secret_name(name: str) -> bool:
    """Whether a parameter, a header or a field of this name holds what nobody should see."""
    return surely_secret(name) or may_be_secret(name) or name.lower() in _NAMES or bool(_SESSION.fullmatch(name))


def mask_url(url: str) -> str:
    """A URL for errors and logs: ``***`` in place of its user and password, of the values of parameters whose names
    look secret, and of all secrets that are known. The fragment is left out."""
    if not _USER_INFO.search(url):  # a password with a "/" in it is none to who reads URLs by the book
        url = without_password(url)
    whole, _, query = url.partition("#")[0].partition("?")
    whole = mask_path(whole)
    if query:
        whole += "?" + "&".join(_masked_pair(pair) for pair in query.split("&"))
    return masked(whole)


def mask_path(url: str) -> str:
    """A URL without its query, masked by names alone: what is known to be secret is left to who writes it out."""
    if "@" in url:
        url = _USER_INFO.sub(f"{MASKED}@", url, count=1)
    if ";" in url:  # /login;jsessionid=...
        url = _PATH_PARAMETER.sub(lambda found: _masked_pair(found[0]), url)
    return url


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
    text = _JSON_NUMBER.sub(lambda found: f'"{found[1]}"{found[2]}{MASKED}' if _of_number(found[1]) else found[0], text)
    text = _XML_FIELD.sub(
        lambda found: f"<{found[1]}>{MASKED}" if _hides(found[1].rpartition(":")[2], found[2]) else found[0], text
    )
    text = _SCHEME.sub(lambda found: f"{found[1]}{found[2]}{MASKED}", text)
    text = _FORM_FIELD.sub(lambda found: f"{found[1]}={MASKED}" if _hides(found[1], found[2]) else found[0], text)
    return masked(text)


def _of_number(name: str) -> bool:
    """Whether a number under such a name is a secret: there are numbers of tokens, too."""
    return surely_secret(name) and not name.lower().endswith(("s", "id", "at", "time"))


def secrets_in(name: str, value: Any) -> list[str]:
    """The secrets in a header or a parameter, to be hidden wherever they show: its value, and that without the word
    before it (``Bearer``) or, of cookies, the value of each. Short ones are words that stand in many a line."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str) or not _hides(name, text.rpartition(" ")[2]):
        return []
    found = [text, text.partition(" ")[2].strip()]
    if name.lower() == "cookie":
        found += [pair.partition("=")[2].strip() for pair in text.split(";")]
    return [one for one in found if len(one) >= _SHORTEST_GIVEN]


def _hides(name: str, value: str) -> bool:
    return surely_secret(name) or (is_secret_name(name) and len(value) > _SHORT and not re.search(r"\s", value))
