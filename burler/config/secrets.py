"""Secrets: which config keys hold one, what is shown in their place, and that no log, error and report has one."""

from __future__ import annotations

import base64
import functools
import html
import json
import logging
import re
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

Path = tuple[str, ...]
"""A key in a config, from the top: ``("db", "password")``. ``*`` is any key, or any place in a list."""

_SECRET = re.compile(
    r"pass(word|wd|phrase|code)|pass$|pwd|secret|token|credential|creds|cookie|bearer|(^|[ _.-])pin$|"
    r"auth(?!ority|ors?(?:[ _.-]|$|(?-i:[A-Z])))|"
    r"(api|private|access|account|shared|signing|encryption|ssh|client|master|subscription)[ _.-]?key|passkey|"
    r"conn(ection)?[ _.-]?str(ing)?(?![a-z])",
    re.IGNORECASE,
)
# As the last word of a name, but for one that says where it leads: ``x_signature``, ``slackWebhookUrl``.
_LAST = frozenset(
    {"hmac", "jwt", "otp", "pat", "psk", "salt", "sas", "sessionid", "sig", "signature", "totp", "webhook"}
)
_LEADS = frozenset({"code", "endpoint", "uri", "url", "value"})
# These may be harmless, too. A ``key`` behind one of the words below is.
_DOUBTFUL = frozenset({"key", "licence", "license"})
_KEYS = frozenset({
    "after", "before", "bookmark", "business", "cache", "column", "continuation", "created", "cursor", "data", "date",
    "dedupe", "dict", "end", "error", "evaluated", "field", "foreign", "group", "hash", "id", "idempotency", "index",
    "issue", "items", "join", "json", "last", "lookup", "map", "message", "natural", "next", "object", "offset",
    "order", "page", "partition", "primary", "project", "public", "range", "record", "records", "replication",
    "response", "result", "results", "routing", "row", "rows", "sort", "start", "state", "stream", "surrogate",
    "table", "time", "timestamp", "unique", "updated",
})  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Facts about a login, and counts of an AI model's tokens: to hide them would hide "sync" and "1000" in every line.
_OPEN = re.compile(
    r"((token|auth|authorization|authentication|credentials?)[ _.-]?(url|uri|type|method|mode|endpoint|flow|scheme|"
    r"scopes?|ttl|lifetime|expir\w*)|key[ _.-]?name|"
    r"(max|min|num|total)\w*[ _.-]?tokens?|tokens?[ _.-]?(count|limit|per[ _.-]?\w+))$",
    re.IGNORECASE,
)
# A number is a secret only below such a name, or where it is marked.
_OF_NUMBERS = re.compile(r"pass(word|wd|phrase|code)|pass$|pwd|secret|token$|pin$|key$|otp$", re.IGNORECASE)
# Up to the last "@": people forget to encode one in a password, or a "/". A port is none.
# Where no @ follows it takes all the rest: the next :// would look for the @ in vain once more.
_IN_URL = re.compile(r"://([^/\s:@\[]*):(?!\d+(?:[/?#]|$))(?:(\S+)@|\S*)")
_TOKEN = re.compile(r"://([^/\s:@\[?#]{20,})(?=@|:[^\s/]*@)")  # as a user, with or without a password
_ENDS_IT = re.compile(r"[/?#@]")  # in a password: libraries take what stands before or behind it for a host
_IN_QUERY = re.compile(r"([?&]([\w.-]+)=)([^&#\s]+)")
# As in "Server=db;Password=..." and "host=db password=..."; the last word of "Shared Access Key" says enough.
_IN_PAIRS = re.compile(r"((?:^|[;,\s])([\w.-]+)\s*=\s*)(\"[^\"]+\"|'[^']+'|[^;\s\"']+)")
_MOST = 1000  # texts given to hide(); what was forgotten is a token that has long run out
_SHORTEST = 4  # a shorter value would mask half of every sentence
_PART = 8  # so much of a secret, as one of its lines or before a cut, is hidden as well
_CUT = re.compile(r"\s*(\.\.\.|…|['\"`:;,]|$)")

_UNICODE = re.compile(r"[/+&<>'=]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
_PERCENT = re.compile("%[0-9A-F]{2}")

MASKED = "***"


@functools.lru_cache(4096)  # the log asks for every key with every line
def looks_secret(key: str) -> bool:
    """Whether a config key is one whose value must never be shown, by its name."""
    return surely_secret(key) or may_be_secret(key)


@functools.lru_cache(4096)
def surely_secret(name: str) -> bool:
    """Whether a name leaves no doubt, also of a field in somebody's reply."""
    if _SECRET.search(name):
        return not _OPEN.search(name)
    words = _words(name)
    while len(words) > 1 and words[-1] in _LEADS:
        words.pop()
    return bool(words) and (words[-1] in _LAST or words[-2:] == ["session", "id"])


@functools.lru_cache(4096)
def may_be_secret(name: str) -> bool:
    """Whether a name often stands for a secret, and as often for something else: ``key``, ``license``."""
    words = _words(name)
    return bool(words) and words[-1] in _DOUBTFUL and not (len(words) > 1 and words[-2] in _KEYS)


def _words(name: str) -> list[str]:
    """``xSignatureV4`` -> ``["x", "signature", "v", "4"]``."""
    return [word.lower() for word in _WORD.findall(name)]


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
        text = without_password(config)
        for pattern in _parameters(text):
            text = pattern.sub(lambda found: found[1] + MASKED if looks_secret(found[2]) else found[0], text)
        return text
    return config


def without_password(text: str) -> str:
    """A text with ``***`` for the passwords of URLs in it, and for users that are tokens."""
    if "://" not in text:
        return text
    return _TOKEN.sub(
        f"://{MASKED}", _IN_URL.sub(lambda found: f"://{found[1]}:{MASKED}@" if found[2] else found[0], text)
    )


def _parameters(text: str) -> tuple[re.Pattern[str], ...]:
    """How names with values stand in a text: as in a URL, or as in what a driver is given."""
    return () if "=" not in text else (_IN_QUERY, _IN_PAIRS) if "://" in text else (_IN_PAIRS,)


def _inside(text: str) -> Iterator[str]:
    """The secrets that stand in a text: passwords of URLs, users that are tokens, and values of parameters whose names
    look secret."""
    for user, password in _IN_URL.findall(text):
        if not password:
            continue
        yield password
        first, *others = _ENDS_IT.split(password)
        if others:  # an error of a library may quote the part that it took for a port
            yield from (f"{user}:{first}", f"'{first}'", f'"{first}"') if 0 < len(first) < _SHORTEST else (first,)
            yield from others
    yield from _TOKEN.findall(text)
    for pattern in _parameters(text):
        for _, name, value in pattern.findall(text):
            value = value.strip("\"'")
            # "?auth=basic" is none to be hidden in every line
            if looks_secret(name) and len(value) >= (_PART if pattern is _IN_QUERY else _SHORTEST):
                yield from dict.fromkeys((value, unquote(value), value.partition(",")[0]))


def _below(paths: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    return tuple(path[1:] for path in paths if path and path[0] in (name, "*"))


def raw_secrets(
    config: Any, inside: bool = False, *, marked: Iterable[Path] = (), numbers: bool = False, doubtful: bool = False
) -> Iterator[str]:
    """Every secret of a config as text: what stands under a secret-looking key or at a ``marked`` path, and
    passwords and secret-looking parameters in URLs and connection strings. Texts shorter than four characters are left
    out; below a ``doubtful`` name (``key``) those shorter than eight.

    Numbers are secrets at a ``marked`` path and under a name that leaves no doubt (``pin``, ``password``,
    ``api_key``, ``access_token``), truth values never: a page size would else be hidden in every line.
    """
    paths = tuple(marked)
    inside, numbers = inside or () in paths, numbers or () in paths
    if isinstance(config, Mapping):
        for name, value in config.items():
            sure = inside or surely_secret(str(name))
            yield from raw_secrets(
                value,
                sure,
                marked=_below(paths, str(name)),
                numbers=numbers or _hides_numbers(str(name)),
                doubtful=not sure and (doubtful or may_be_secret(str(name))),
            )
    elif isinstance(config, list | tuple):
        for value in config:
            yield from raw_secrets(value, inside, marked=_below(paths, "*"), numbers=numbers, doubtful=doubtful)
    elif _is_value(config, inside or doubtful, numbers) and (inside or len(str(config)) >= _PART):
        yield str(config)
    if isinstance(config, str):  # a driver may print the password alone, also of a URL that is secret as a whole
        yield from (found for found in _inside(config) if len(found) >= _SHORTEST)


def _is_value(value: Any, inside: bool, numbers: bool) -> bool:
    if not inside or value is None or isinstance(value, bool) or (isinstance(value, int | float) and not numbers):
        return False
    return len(str(value)) >= _SHORTEST


def secret_values(config: Any, inside: bool = False, *, marked: Iterable[Path] = ()) -> Iterator[str]:
    """The texts of :func:`raw_secrets`, also as they look inside JSON, ``repr`` and a URL, so that logs and errors
    can leave them out."""
    for text in raw_secrets(config, inside, marked=marked):
        yield from spellings(text)


def spellings(text: str) -> set[str]:
    """A text as it looks plain, inside JSON, ``repr``, that of its bytes, hex and a URL, and from eight bytes on inside
    base64 (a password in an ``Authorization: Basic`` header); of one with several lines (a PEM key) also each line of
    eight characters and more, for whoever prints it may indent it."""
    lines = [line.strip() for line in text.splitlines()]
    found = _spelled(text)
    for line in lines if len(lines) > 1 else ():
        if len(line) >= _PART and not line.startswith("-----"):  # "BEGIN PRIVATE KEY" is none
            found |= _spelled(line)
    return found


def _spelled(text: str) -> set[str]:
    plain = text.encode(errors="replace").decode()
    escaped = json.dumps(text)[1:-1]
    found = {
        text,
        escaped,
        json.dumps(text, ensure_ascii=False)[1:-1],
        escaped.replace("/", "\\/"),  # as PHP has it
        _UNICODE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", escaped),  # as .NET has it
        _UNICODE.sub(lambda sign: f"\\u{ord(sign[0]):04X}", _ESCAPE.sub(lambda code: "\\u" + code[1].upper(), escaped)),
        repr(text)[1:-1],
        ascii(text)[1:-1],
        html.escape(text),
    }
    for raw in {plain.encode(), plain.encode("latin-1", "replace")}:  # HTTP's headers are of the second
        encoded = quote(raw, safe="")
        found |= {
            quote_plus(raw),
            encoded,
            _PERCENT.sub(lambda code: code[0].lower(), encoded),
            quote(raw),
            repr(raw)[2:-1],
            raw.hex(),
            raw.hex().upper(),
        }
        found |= in_base64(raw)
    return found


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


# ---- what is hidden in this process ---------------------------------------------------------------------------------


class Clean(str):
    """A line that is clean already, and whose form must stay."""

    __slots__ = ()


class NoSecrets(logging.Filter):
    """Leaves secrets out of every line of a handler, whatever its formatter."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: tuple[str, ...] = ()
        self._watched: tuple[tuple[Any, tuple[Path, ...]], ...] = ()
        self._raw: frozenset[str] = frozenset()
        self._added: dict[str, set[str]] = {}
        self._lock = threading.RLock()  # tokens are fetched in all threads, and each line of the log asks

    def add(self, text: str) -> None:
        """Hide a text that stands in no config, whichever configs come and go."""
        with self._lock:
            if self._added.pop(text, None) is None and len(self._added) >= _MOST:
                del self._added[next(iter(self._added))]
            self._added[text] = spellings(text)
            self._gather()

    def watch(self, config: Any, marked: Iterable[Path], *, more: bool) -> None:
        """Hide the secrets of a config, and those that come into it later on."""
        with self._lock:
            if not more:
                self._watched, self._raw = (), frozenset()
                self._gather()
            self._watched = (*self._watched, (config, tuple(marked)))
            self.look()

    def look(self) -> None:
        """Learn the secrets that have come into the configs; those that were there before stay hidden."""
        with self._lock:
            try:
                now = {text for config, marked in self._watched for text in raw_secrets(config, marked=marked)}
            except RuntimeError:  # a thread of the tap's is changing the config just now
                return
            new = now - self._raw
            if new:
                self._raw = self._raw | new
                self._gather()

    def _gather(self) -> None:
        found = {spelled for text in self._raw for spelled in spellings(text)}.union(*self._added.values())
        self.secrets = tuple(sorted(found, key=len, reverse=True))

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record where a secret stands in it."""
        self.look()
        if self.secrets and not isinstance(record.msg, Clean):
            message = record.getMessage()
            clean = scrub(message, self.secrets)
            if clean != message:
                record.msg, record.args = clean, ()
            if record.exc_info and record.exc_info[0] is not None:
                text = record.exc_text or "".join(traceback.format_exception(*record.exc_info)).rstrip()
                record.exc_text = scrub(text, self.secrets)
        return True


no_secrets = NoSecrets()
"""The one watcher of this process: logs are of the process, too."""


def hide(text: str) -> None:
    """Hide a secret that stands in no config (a token that was fetched): from here on it shows as ``***`` in logs,
    errors and reports of this process, in each of its :func:`spellings`.

    Texts shorter than four characters are left as they are. The last 1,000 such secrets are kept in mind: a tap that
    runs for months gets a new token every few minutes.
    """
    if len(text) >= _SHORTEST:
        no_secrets.add(text)


def masked(text: str) -> str:
    """A text with ``***`` for each secret that is known so far: those of the configs of this process, and those that
    were given to :func:`hide`."""
    no_secrets.look()
    return scrub(text, no_secrets.secrets)


def hide_config(config: Any, *, marked: Iterable[Path] = (), more: bool = False) -> None:
    """From here on secrets of a config show as ``***`` in every log line: the values of its secret-looking keys and
    those at the ``marked`` paths.

    The config itself is watched: a token that the tap refreshes in it is hidden from then on, and the old one stays
    hidden. ``more`` adds a config to those that are hidden already; else it takes their place.
    """
    no_secrets.watch(config, marked, more=more)
