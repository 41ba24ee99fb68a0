"""``[tool.burler.verify]`` of pyproject.toml: which rules count in a project, and by which figures.

[tool.burler.verify]
ignore = ["B324"]
baseline = "verify-baseline.json"
per-stream-ignores = { audits = ["C113"] }
limits = { min-advance-ratio = 10 }
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.errors import ConfigError
from burler.spec.choice import Choice, check_choice
from burler.spec.limits import Limits
from burler.spec.table import RULES
from burler.suggest import near_or_all

_WORDS = ("select", "ignore", "per-stream-ignores", "limits", "baseline", "max-records", "max-seconds", "strict")


@dataclass(frozen=True, slots=True)
class Project:
    """What a project says.

    Attributes:
        place: the file it stands in, for errors; None where there is none.
        baseline: the path of its baseline, relative to the file's folder.
    """

    place: Path | None = None
    choice: Choice = field(default_factory=Choice)
    limits: Limits = field(default_factory=Limits)
    baseline: Path | None = None
    max_records: int | None = None
    max_seconds: float | None = None
    strict: bool = False


def find_project(folder: Path) -> Project:
    """What the nearest pyproject.toml with such a table says, from a folder upwards.

    Raises:
        ConfigError: it can't be read, or says what it can't say.
    """
    for here in (folder, *folder.parents):
        path = here / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path} can't be read: {error}.") from None
        table = said.get("tool", {})
        table = table.get("burler", {}) if isinstance(table, dict) else {}
        table = table.get("verify") if isinstance(table, dict) else None
        if table is not None:
            return read_project(table, path)
    return Project()


def read_project(table: Any, path: Path) -> Project:
    """A table ``[tool.burler.verify]``.

    Raises:
        ConfigError: it says what it can't say.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: [tool.burler.verify] is no table.")
    for word in table:
        if word not in _WORDS:
            raise _unknown(path, word, _WORDS)
    per_stream = _of(table, "per-stream-ignores", dict, {}, path)
    choice = Choice(
        select=_codes(table.get("select", ["ALL"]), "select", path),
        ignore=_codes(table.get("ignore", []), "ignore", path),
        per_stream={
            stream: _codes(codes, f"per-stream-ignores.{stream}", path) for stream, codes in per_stream.items()
        },
    )
    check_choice(choice, RULES)
    baseline = _of(table, "baseline", str, None, path)
    return Project(
        place=path,
        choice=choice,
        limits=read_limits(_of(table, "limits", dict, {}, path), path),
        baseline=None if baseline is None else path.parent / baseline,
        max_records=_above_zero(_of(table, "max-records", int, None, path), "max-records", path),
        max_seconds=_above_zero(_of(table, "max-seconds", (int, float), None, path), "max-seconds", path),
        strict=_of(table, "strict", bool, False, path),
    )


def read_limits(said: Mapping[str, Any], path: Path) -> Limits:
    """Figures by their names, with ``-`` for ``_``.

    Raises:
        ConfigError: one is unknown, or no number above zero.
    """
    known = {one.name.replace("_", "-"): one for one in dataclasses.fields(Limits)}
    values: dict[str, Any] = {}
    for word, value in said.items():
        if word not in known:
            raise _unknown(path, f"limits.{word}", [f"limits.{name}" for name in known])
        whole = known[word].type in ("int", int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or value <= 0:
            raise ConfigError(
                f"{path}: limits.{word} = {value!r}: a {'whole ' if whole else ''}number above 0 is needed."
            )
        values[known[word].name] = value
    return Limits(**values)


def _of(table: Mapping[str, Any], word: str, kind: Any, default: Any, path: Path) -> Any:
    value = table.get(word, default)
    wrong = isinstance(value, bool) and kind is not bool
    if value is not default and (wrong or not isinstance(value, kind)):
        raise ConfigError(f"{path}: [tool.burler.verify] {word} = {value!r} is of the wrong kind.")
    return value


def _above_zero(value: Any, word: str, path: Path) -> Any:
    if value is not None and value <= 0:
        raise ConfigError(f"{path}: [tool.burler.verify] {word} = {value!r} must be above 0.")
    return value


def _codes(value: Any, word: str, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f'{path}: [tool.burler.verify] {word} must be a list of codes: ["B", "C101"].')
    return tuple(value)


def _unknown(path: Path, word: str, known: Any) -> ConfigError:
    return ConfigError(f"{path}: [tool.burler.verify] knows no '{word}'.{near_or_all(word, known, 'Known')}")
