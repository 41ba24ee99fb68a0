"""Secrets: which config keys hold one, and what is shown in their place."""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

Path = tuple[str, ...]
"""A key in a config, from the top: ``("db", "password")``. ``*`` is any key, or any place in a list."""

_SECRET = re.compile(
    r"pass(word|wd|phrase|code)|pass$|pwd|secret|token|credential|creds|cookie|bearer|(^|[ _.-])pin$|"
    r"auth(?!ority|ors?(?:[ _.-]|$|(?-i:[A-Z])))|"
    r"(api|private|access|account|shared|signing|encryption|ssh|client|master)[ _.-]?key",
    re.IGNORECASE,
)
# Facts about a login, and counts of an AI model's tokens: to hide them would hide "sync" and "1000" in every line.
_OPEN = re.compile(
    r"((token|auth|authorization|authentication|credentials?)[ _.-]?(url|uri|type|method|mode|endpoint|flow|scheme|"
    r"scopes?|ttl|lifetime|expir\w*)|(max|min|num|total)\w*[ _.-]?tokens?|tokens?[ _.-]?(count|limit|per[ _.-]?\w+))$",
    re.IGNORECASE,
)
# A number is a secret only below such a name, or where it is marked.
_OF_NUMBERS = re.compile(r"pass(word|wd|phrase|code)|pass$|pwd|secret|token$|pin$|key$", re.IGNORECASE)
# Up to the last "@": people forget to encode one in a password, or a "/". A port is none.
_IN_URL = re.compile(r"://[^/\s:@]*:(?!\d+(?:[/?#]|$))([^\s]+)@")
_IN_QUERY = re.compile(r"([?&]([\w.-]+)=)([^&#\s]+)")
_SIGNS = re.compile(r"key$|sig$|signature$", re.IGNORECASE)  # as parameters of URLs these are secrets, too
_SHORTEST = 4  # a shorter value would mask half of every sentence
_PART = 8  # so much of a secret, as one of its lines or before a cut, is hidden as well
_CUT = re.compile(r"\s*(\.\.\.|…|['\"`:;,]|$)")

_UNICODE = re.compile(r"[/+&<>'=]")
_PERCENT = re.compile("%[0-9A-F]{2}")

MASKED = "***"


@functools.lru_cache(4096)  # the log asks for every key with every line
def looks_secret(key: str) -> bool:
    """Whether a config key is one whose value must never be shown, by its name."""
    return bool(_SECRET.search(key)) and not _OPEN.search(key)


@functools.lru_cache(4096)
def _hides_numbers(key: str) -> bool:
    return looks_secret(key) and bool(_OF_NUMBERS.search(key))


def mask(config: Any, key: str = "", *, marked: Iterable[Path] = ()) -> Any:
    """A copy of a config in which secrets are ``***``, at every depth: the values of secret-looking keys, those at
    the ``marked`` paths, and in URLs passwords and parameters with such names."""
    paths = tuple(marked)
    if config is not None and ((key and looks_secret(key)) or () in paths):
        return MASKED
    if isinstance(config, Mapping):
        return {name: mask(value, str(name), marked=_below(paths, str(name))) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [mask(value, marked=_below(paths, "*")) for value in config]
    if isinstance(config, str):
        text = _IN_URL.sub(lambda found: found[0].replace(found[1], MASKED), config)
        if "://" not in text:
            return text
        return _IN_QUERY.sub(lambda found: found[1] + MASKED if _signs(found[2]) else found[0], text)
    return config


def _signs(parameter: str) -> bool:
    return looks_secret(parameter) or bool(_SIGNS.search(parameter))


def _in_url(text: str) -> Iterator[str]:
    """The secrets that stand in URLs: passwords, and values of parameters whose names look secret."""
    yield from _IN_URL.findall(text)
    for _, name, value in _IN_QUERY.findall(text) if "://" in text else ():
        if _signs(name) and len(value) >= _PART:  # "?auth=basic" is none to be hidden in every line
            yield from dict.fromkeys((value, unquote(value)))


def _below(paths: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    return tuple(path[1:] for path in paths if path and path[0] in (name, "*"))


def raw_secrets(
    config: Any, inside: bool = False, *, marked: Iterable[Path] = (), numbers: bool = False
) -> Iterator[str]:
    """Every secret of a config as text: what stands under a secret-looking key or at a ``marked`` path, and
    passwords and secret-looking parameters in URLs. Texts shorter than four characters are left out.

    Numbers are secrets at a ``marked`` path and under a name that leaves no doubt (``pin``, ``password``,
    ``api_key``, ``access_token``), truth values never: a page size would else be hidden in every line.
    """
    paths = tuple(marked)
    inside, numbers = inside or () in paths, numbers or () in paths
    if isinstance(config, Mapping):
        for name, value in config.items():
            found = inside or looks_secret(str(name))
            sure = numbers or _hides_numbers(str(name))
            yield from raw_secrets(value, found, marked=_below(paths, str(name)), numbers=sure)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from raw_secrets(value, inside, marked=_below(paths, "*"), numbers=numbers)
    elif _is_value(config, inside, numbers):
        yield str(config)
    if isinstance(config, str):  # a driver may print the password alone, also of a URL that is secret as a whole
        yield from (found for found in _in_url(config) if len(found) >= _SHORTEST)


def _is_value(value: Any, inside: bool, numbers: bool) -> bool:
    if not inside or value is None or isinstance(value, bool) or (isinstance(value, int | float) and not numbers):
        return False
    return len(str(value)) >= _SHORTEST


def secret_values(config: Any, inside: bool = False, *, marked: Iterable[Path] = ()) -> Iterator[str]:
    """The texts of :func:`raw_secrets`, also as they look inside JSON, ``repr`` and a URL, so that logs and errors
    can leave them out."""
    for text in raw_secrets(config, inside, marked=marked):
        yield from spellings(text)


def hide(text: str) -> None:
    """Hide a secret that stands in no config (a token that was fetched): from here on it shows as ``***`` in logs,
    errors and reports of this process, in each of its :func:`spellings`.

    Texts shorter than four characters are left as they are. The last 1,000 such secrets are kept in mind: a tap that
    runs for months gets a new token every few minutes.
    """
    from burler.config.watched import no_secrets

    if len(text) >= _SHORTEST:
        no_secrets.add(text)


def masked(text: str) -> str:
    """A text with ``***`` for each secret that is known so far: those of the configs of this process, and those that
    were given to :func:`hide`."""
    from burler.config.watched import clean

    return clean(text)


def spellings(text: str) -> set[str]:
    """A text as it looks plain, inside JSON, ``repr`` and a URL, and from eight bytes on inside base64 (a password in
    an ``Authorization: Basic`` header); of one with several lines (a PEM key) also each line of eight characters and
    more, for whoever prints it may indent it."""
    lines = [line.strip() for line in text.splitlines()]
    found = _spelled(text)
    for line in lines if len(lines) > 1 else ():
        if len(line) >= _PART and not line.startswith("-----"):  # "BEGIN PRIVATE KEY" is none
            found |= _spelled(line)
    return found


def _spelled(text: str) -> set[str]:
    plain = text.encode(errors="replace").decode()
    escaped, encoded = json.dumps(text)[1:-1], quote(plain, safe="")
    found = {
        text,
        escaped,
        json.dumps(text, ensure_ascii=False)[1:-1],
        escaped.replace("/", "\\/"),  # as PHP has it
        _UNICODE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", escaped),  # as .NET has it
        _UNICODE.sub(lambda sign: f"\\u{ord(sign[0]):04X}", escaped),
        repr(text)[1:-1],
        quote_plus(plain),
        encoded,
        _PERCENT.sub(lambda code: code[0].lower(), encoded),
        quote(plain),
        html.escape(text),
    }
    return found | in_base64(plain.encode())


def in_base64(secret: bytes) -> set[str]:
    """What base64 makes of a secret whatever stands before and behind it: the characters that it decides alone, for
    each of the three places where it may begin, in both alphabets. Nothing for less than eight bytes."""
    found: set[str] = set()
    for before in range(3) if len(secret) >= _PART else ():
        bits = 8 * (before + len(secret))
        begin = (8 * before + 5) // 6
        plain = base64.b64encode(bytes(before) + secret).decode()[begin : bits // 6]
        found |= {plain, plain.replace("+", "-").replace("/", "_")}
    return found


def scrub(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` with every secret replaced, the longest first: a secret may begin with another one."""
    ordered = sorted(secrets, key=len, reverse=True)
    for secret in ordered:
        text = text.replace(secret, MASKED)
    for secret in ordered:
        if len(secret) > _PART and secret[:_PART] in text:
            text = _without_beginnings(text, secret)
    return text


def _without_beginnings(text: str, secret: str) -> str:
    """Mask the first eight characters and more of a secret where the text is cut: at its end, before ``...`` or at
    the end of a quotation."""
    at = 0
    while (at := text.find(secret[:_PART], at)) >= 0:
        end = at + _PART
        while end < len(text) and end - at < len(secret) and text[end] == secret[end - at]:
            end += 1
        # What follows may belong to both: a secret with dots in it, cut before one of them.
        if _CUT.match(text, end) or text[at:end].endswith("..."):
            text = text[:at] + MASKED + text[end:]
            at += len(MASKED)
        else:
            at = end
    return text
