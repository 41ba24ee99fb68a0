"""A config that the tap changes at run time (a refreshed token) goes back into the files that it came from."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import stat
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from burler.config.edit import GONE, edit_json
from burler.config.loading import Loaded, parse_object
from burler.config.problems import dotted
from burler.config.secrets import Path
from burler.errors import ConfigError
from burler.localfile import locked_itself, remove_leftovers, replace_file

logger = logging.getLogger(__name__)

_NO_JSON = "\0burler: no JSON: "
_REASONS = {
    errno.EBUSY: "is mounted by itself and can't be replaced (mount its folder)",
    errno.ENOENT: "is gone",
}


_known: weakref.WeakSet[ConfigFiles] = weakref.WeakSet()  # those of the runs of this process
_known_lock = threading.Lock()


def save_now(config: Mapping[str, Any]) -> bool:
    """Save what has changed in the config of a run at once, and not after the next page: for a token that works only
    once, of which the next one must be safe before it is used. ``config`` is the dict that the tap's functions get, or
    an object inside of it. True if a file was written; False for a config that came from no file.

    Never raises for a file that can't be written: see :meth:`ConfigFiles.save_if_changed`.
    """
    found = _files_of(config)
    return found is not None and found[0].save_if_changed(found[0].config)


def has_file(config: Mapping[str, Any]) -> bool:
    """Whether a config, or the one that it is part of, came from a file."""
    return _files_of(config) is not None


def is_apart(config: Mapping[str, Any]) -> bool:
    """Whether runs of this process have config files, and none of them this config: then it is a copy of one, and what
    is written into it is never saved."""
    with _known_lock:
        some = len(_known) > 0
    return some and _files_of(config) is None


def newer_in_file(config: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """What another process has meanwhile written under some keys of a run's config into its files: the values that
    differ from those which the files held when we last read or wrote them. ``config`` as for :func:`save_now`.

    Of a file that can't be read now, or holds no JSON, nothing.
    """
    found = _files_of(config)
    return {} if found is None else found[0].newer(found[1], keys)


def _files_of(config: Mapping[str, Any]) -> tuple[ConfigFiles, Path] | None:
    """The files of the run whose config this is, or which it is part of, and where in the config it stands."""
    with _known_lock:
        runs = list(_known)
    for files in runs:
        path = _path_of(config, files.config)
        if path is not None:
            return files, path
    return None


def _path_of(wanted: Any, node: Any, path: Path = ()) -> Path | None:
    if node is wanted:
        return path
    if isinstance(node, Mapping):
        for key, value in list(node.items()):
            found = _path_of(wanted, value, (*path, key))
            if found is not None:
                return found
    return None


class ConfigFiles:
    """Remembers where a config came from, and saves what the tap changes in it.

    A changed key is written into the last file that holds it, a new one into the last file that holds the object
    it stands in, else into the last file. What came from the environment, or is a default, is written only where
    the tap has changed it; a key of the environment is never written, since the variable would win over it.

    Args:
        loaded: what :func:`burler.config.loading.load` gave.
        config: the config as the tap's functions get it, checked, before any of them has run.
    """

    def __init__(self, loaded: Loaded, config: Mapping[str, Any]) -> None:
        self.config = config
        self._lock = threading.RLock()
        # A tap may change the current folder while it runs.
        self._files = [(file.absolute(), content) for file, content in loaded.files]
        self._variables = loaded.variables
        self._said: set[str] = set()
        self._seen = self._encode(config) or "{}"
        self._base: dict[str, Any] = json.loads(self._seen)
        self._failed: str | None = None
        with _known_lock:
            _known.add(self)

    def save_if_changed(self, config: Mapping[str, Any], *, last: bool = False) -> bool:
        """Save what has changed since the last call; True if a file was written.

        Cheap when nothing has changed. Never raises for a file that can't be written: that is one CRITICAL line
        in the log, and the run goes on. It is tried again after the next change, and if ``last`` says that the
        run ends.
        """
        with self._lock:
            now = self._encode(config)
            if now is None or now == self._seen or (now == self._failed and not last):
                return False
            found: dict[str, Any] = json.loads(now)
            wrote, whole = self._save(dict(_changes(self._base, found, ())))
            if whole:
                self._seen, self._base, self._failed = now, found, None
            else:
                self._failed = now
            return wrote

    def newer(self, path: Path, keys: Iterable[str]) -> dict[str, Any]:
        """See :func:`newer_in_file`; ``path`` leads to the object that the keys stand in."""
        found: dict[str, Any] = {}
        with self._lock:
            now = [(_read(file), before) for file, before in self._files]
            for place in ((*path, key) for key in keys):
                if place in self._variables:  # the variable would win
                    continue
                # The last file that has it wins.
                held = next(((new, old) for new, old in reversed(now) if _holds(new, place)), None)
                if held is not None and _at(held[0], place) != _at(held[1], place):
                    found[place[-1]] = _at(held[0], place)
        return found

    def _encode(self, config: Mapping[str, Any]) -> str | None:
        try:
            return json.dumps(config, default=lambda value: f"{_NO_JSON}{type(value).__name__} {id(value)}")
        except (TypeError, ValueError, RecursionError) as error:
            self._say(logging.CRITICAL, f"the config can't be saved: it holds what JSON can't ({error})")
        except RuntimeError:  # a thread of the tap's is changing it just now; the next call sees the change
            pass
        return None

    def _save(self, changes: dict[Path, Any]) -> tuple[bool, bool]:
        """Whether a file was written, and whether nothing is left that should be tried again."""
        wanted: dict[int, dict[Path, Any]] = {}
        for path, value in changes.items():
            places = self._places(path, value)
            for i in places:
                wanted.setdefault(i, {})[path] = value
            if places and isinstance(value, dict):
                # An object in a file below was hidden by what stood here before, and would now be merged in.
                for i in range(places[0]):
                    if _holds(self._files[i][1], path):
                        wanted.setdefault(i, {})[path] = GONE
        wrote, whole = False, True
        for i, keys in wanted.items():
            file = self._files[i][0]
            try:
                changed, content = _update(file, keys)
                wrote = wrote or changed
                self._files[i] = file, content
            except (OSError, ConfigError) as error:
                whole = False
                self._say(logging.CRITICAL, _not_saved(file, keys, error))
        return wrote, whole

    def _places(self, path: Path, value: Any) -> list[int]:
        """The files, by number, that a change belongs into; a warning if there is none."""
        name = dotted(path)
        for given, variable in self._variables.items():
            if given[: len(path)] == path[: len(given)]:
                self._say(
                    logging.WARNING,
                    f"the tap changed config '{name}', which environment variable {variable} sets: it is not saved, "
                    "and the next run begins with the variable's value. Give the key in a --config file instead",
                )
                return []
        if value is not GONE and not _is_json([*path, value]):
            self._say(logging.WARNING, f"the tap put into config '{name}' what is no JSON value: it is not saved")
            return []
        if not self._files:
            self._say(
                logging.WARNING,
                f"the tap changed config '{name}', and there is no --config file to save it in: the next run "
                "begins without the change",
            )
            return []
        held = [i for i, (_file, content) in enumerate(self._files) if _holds(content, path)]
        if value is GONE:
            return held
        last = len(self._files) - 1
        for length in range(len(path), 0, -1):
            for i in range(last, -1, -1):
                if _holds(self._files[i][1], path[:length]):
                    return [i]
                if _hides(self._files[i][1], path[:length]):
                    break
        return [last]

    def _say(self, level: int, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            logger.log(level, "%s", sentence)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """Each key that differs, as deep as both sides are objects."""
    for key in before.keys() - after.keys():
        yield (*path, key), GONE
    for key, value in after.items():
        old = before.get(key, GONE)
        if isinstance(old, dict) and isinstance(value, dict):
            yield from _changes(old, value, (*path, key))
        elif old is GONE or json.dumps(old) != json.dumps(value):
            yield (*path, key), value


def _is_json(value: Any) -> bool:
    """Whether every JSON reader takes it: no NaN, no infinity, no half of a surrogate pair, no mark of ours."""
    if isinstance(value, dict):
        return all(_is_json(key) and _is_json(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not value.startswith(_NO_JSON) and not re.search("[\ud800-\udfff]", value)
    return True


def _holds(content: Any, path: Path) -> bool:
    for key in path:
        if not isinstance(content, Mapping) or key not in content:
            return False
        content = content[key]
    return True


def _hides(content: Any, path: Path) -> bool:
    """Whether a file has something that is no object on the way to a path: it hides what files before it have there."""
    above = [_at(content, path[:length]) for length in range(1, len(path))]
    return any(held is not GONE and not isinstance(held, dict) for held in above)


def _at(content: Any, path: Path) -> Any:
    """What stands at a path; GONE if there is nothing."""
    if not _holds(content, path):
        return GONE
    for key in path:
        content = content[key]
    return content


def _read(file: FilePath) -> dict[str, Any]:
    try:
        return parse_object(file.read_bytes(), what="")
    except (OSError, ConfigError):
        return {}


def _update(file: FilePath, keys: Mapping[Path, Any]) -> tuple[bool, dict[str, Any]]:
    """Set keys in a file as it is now: another process may have changed others of it meanwhile.

    Gives whether it was written, and what it holds now.
    """
    with locked_itself(file) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is no plain file")
        if not os.access(file, os.W_OK):
            raise OSError(errno.EACCES, "is read-only")  # the folder may allow it, but its owner said no
        with open(fd, "rb", closefd=False) as opened:
            content = opened.read()
        remove_leftovers(file)
        made = edit_json(content, keys, what="")
        # Read before the old one is gone: what no later run could load must not take its place.
        holds = parse_object(made, what="would no longer be JSON, and so stays as it was:")
        if made != content:
            replace_file(file, made)
        return made != content, holds


def _not_saved(file: FilePath, keys: Mapping[Path, Any], error: Exception) -> str:
    names = ", ".join(f"'{dotted(path)}'" for path in keys)
    if isinstance(error, OSError):
        reason = _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)
    else:
        reason = str(error).strip().rstrip(".")
    return (
        f"config file {file} {reason}: what the tap changed in {names} is NOT SAVED. "
        "The next run begins with the old values; a token that works only once has to be given anew"
    )
