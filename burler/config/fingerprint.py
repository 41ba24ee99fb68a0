"""What of a config says whose data a tap reads, as a short hash a key: to see that two runs read the same source.

Secrets don't count (a password is changed, an account stays), nor burler's own settings, nor what the author marks as
``tuning`` in the config's spec, nor when a token expires. What the tap itself changes while it runs counts no more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from burler.config.forms import ConfigForm
from burler.config.problems import dotted
from burler.config.secrets import MASKED, Path, mask
from burler.settings import Settings

Hashes = Mapping[str, str | None]
"""Keys with dots between their parts -> the hash of the value; None: any value."""

_EXPIRES = re.compile(r"expir(es|y|ation)", re.IGNORECASE)
_DIGITS = 8
"""Of a hash: enough to tell two accounts apart. It hides nothing from who has a list of accounts: so secrets are left
out."""


class Fingerprint:
    """The hashes of a config.

    Args:
        form: what the tap says of its config.
        config: as the tap's functions get it; it is looked at again when it is asked for.
        given: as the user gave it, without defaults.
    """

    def __init__(self, form: ConfigForm, config: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        own = form.keys
        fields = Settings.__dataclass_fields__
        self._settings = {key for key in fields if not (fields[key].metadata["common"] and key in own)}
        self._secret, self._tuning = form.secret_paths, form.tuning_paths
        self._config, self._given = config, self._hashed(given)
        self._now = self._begin = self._hashed(config)

    def hashes(self, earlier: Hashes | None = None) -> dict[str, str | None]:
        """What is to be kept.

        Args:
            earlier: what was kept before: a key whose value counted no more does not count again.
        """
        with contextlib.suppress(RuntimeError):  # a thread of the tap's is changing it just now; the next call sees it
            self._now = self._hashed(self._config)
        now = self._now
        changed = {key for key in {*now, *self._begin} if now.get(key) != self._begin.get(key)}
        changed |= {key for key, value in (earlier or {}).items() if value is None}
        return {**now, **dict.fromkeys(changed)}

    def differing(self, kept: Hashes) -> list[str]:
        """The keys that have other values than those that were kept. A key that is new, and that only a default of the
        tap's has brought, does not differ."""
        now = self._begin
        keys = {*kept, *(key for key in now if key in self._given)}
        return sorted(key for key in keys if kept.get(key, "") is not None and kept.get(key) != now.get(key))

    def _hashed(self, config: Mapping[str, Any]) -> dict[str, str]:
        shown = mask({key: value for key, value in config.items() if key not in self._settings}, marked=self._secret)
        return {dotted(path): _hash(value) for path, value in _leaves(shown, (), tuple(self._tuning))}


def _leaves(value: Any, path: Path, out: tuple[Path, ...]) -> Iterator[tuple[Path, Any]]:
    """The values that count, by their paths; lists are values. ``out``: what does not, as seen from here."""
    if () in out or value is None or value == MASKED or (path and _EXPIRES.search(path[-1])):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)), _below(out, str(key)))
    else:
        yield path, _without(value, out)


def _without(value: Any, out: tuple[Path, ...]) -> Any:
    """A list without what does not count in it."""
    if isinstance(value, list | tuple):
        below = _below(out, "*")
        return [_without(one, below) for one in value if () not in below]
    if isinstance(value, Mapping):
        return {
            key: _without(one, _below(out, str(key))) for key, one in value.items() if () not in _below(out, str(key))
        }
    return value


def _below(paths: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    return tuple(path[1:] for path in paths if path and path[0] in (name, "*"))


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
