"""Where a run begins: anew (``--full-refresh``), at ``--state``, or at what its lake has; and who keeps its state."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.config.fingerprint import Fingerprint
from burler.declare.app import App
from burler.declare.checks import line_of
from burler.errors import ConfigError, UsageError
from burler.suggest import near_or_all

if TYPE_CHECKING:
    from burler.lake.state import LakeState, StateKeeper

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """Whose streams a run moves.

    Attributes:
        name: of the tap.
        roots: its streams, and for each the stream above it with which its rows come (or itself).
        finds_more: there may be streams that it does not know yet.
        fingerprint: of its config; None: nothing is known of that.
    """

    name: str
    roots: Mapping[str, str]
    finds_more: bool = False
    fingerprint: Fingerprint | None = None

    @classmethod
    def of_app(cls, app: App, config: Mapping[str, Any], given_config: Mapping[str, Any]) -> Source:
        """Of an app. ``config``, ``given_config``: see ``Fingerprint``."""
        return cls(
            app.name,
            {name: line_of(spec, app.streams)[-1].tap_stream_id for name, spec in app.streams.items()},
            app.discover is not None or any(spec.is_pattern for spec in app.streams.values()),
            Fingerprint(app.config_form, config, given_config),
        )


@dataclass(frozen=True, slots=True)
class Beginning:
    """``given``: the state that there was; ``start``: where the run begins; ``keeper``: keeps the state in the lake."""

    given: dict[str, Any] | None
    start: dict[str, Any] | None
    keeper: StateKeeper | None = None


def beginning(
    source: Source, lake: LakeState | None, *, given: dict[str, Any] | None, refresh: bool | str | Collection[str]
) -> Beginning:
    """Where a run begins.

    Args:
        lake: what the lake has of this tap; None: there is none, or the run leaves rows out and neither reads nor
            writes it.
        given: what ``--state`` says.
        refresh: the streams that begin anew, by their names, or as a text with commas between them; True: all.

    Raises:
        UsageError: ``refresh`` names a stream that is not there, or none.
        ConfigError: the lake has this tap's rows from another config.
        StateError: the lake's state can't be read.
    """
    if lake is None:
        return Beginning(given, _without(given, _refreshed(source, refresh, given)))
    from burler.lake.state import StateKeeper, differing_config

    stored, prints = lake.read(), source.fingerprint
    other = None if stored is None or prints is None else differing_config(lake, stored, prints)
    if other is not None and refresh is not True:
        raise ConfigError(other)
    if given is None and stored is not None and refresh is not True:
        given = stored.start(lake.place)
        logger.info("%s: goes on from the state in the lake, of %s", source.name, stored.written or "an unknown time")
    names = _refreshed(source, refresh, given)
    start = _without(given, names)
    keeper = StateKeeper(
        lake, begun=stored, start=start or {}, fingerprint=prints, refreshed=names, replaces=other is not None
    )
    return Beginning(given, start, keeper)


def _refreshed(
    source: Source, refresh: bool | str | Collection[str], given: Mapping[str, Any] | None
) -> set[str] | None:
    """The streams that begin anew; None: all."""
    if refresh is True:
        return None
    listed = refresh.split(",") if isinstance(refresh, str) else refresh or ()
    names = {name for name in map(str.strip, listed) if name}
    if isinstance(refresh, str) and not names:
        raise UsageError(
            "--full-refresh= names no stream. All of them: --full-refresh; some: --full-refresh=orders,items."
        )
    known = {*source.roots, *((given or {}).get("bookmarks") or {})}
    for name in sorted(names - known):
        if not source.finds_more:
            raise UsageError(
                f"--full-refresh: {source.name} has no stream '{name}'.{near_or_all(name, sorted(known), 'It has')}"
            )
        logger.warning("%s: --full-refresh: no state speaks of a stream '%s'", source.name, name)
    wanted = {source.roots[name] for name in names if name in source.roots}
    names |= {name for name, root in source.roots.items() if root in wanted}
    if names:
        logger.info("%s: --full-refresh: %s", source.name, ", ".join(sorted(names)))
    return names


def _without(state: dict[str, Any] | None, names: set[str] | None) -> dict[str, Any] | None:
    """A state that says nothing of some streams, or (None) of any."""
    if state is None or names is None:
        return None
    left = copy.deepcopy(state)
    for key in ("bookmarks", "activate_versions") if names else ():
        if isinstance(left.get(key), dict):
            left[key] = {name: entry for name, entry in left[key].items() if name not in names}
    if left.get("currently_syncing") in names:
        del left["currently_syncing"]
    return left
