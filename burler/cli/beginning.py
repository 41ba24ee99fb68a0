"""Where a run begins: anew (``--full-refresh``), at ``--state``, or at what its lake has; and who keeps its state."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.cli.options import ALL
from burler.config.fingerprint import Fingerprint
from burler.declare.app import App
from burler.declare.checks import line_of
from burler.errors import ConfigError, UsageError
from burler.settings import Settings
from burler.sinks import lake_of_sink
from burler.suggest import near_or_all

if TYPE_CHECKING:
    from burler.lake.state import StateKeeper

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Beginning:
    """``given``: the state that there was; ``start``: where the run begins; ``keeper``: keeps the state in the lake."""

    given: dict[str, Any] | None
    start: dict[str, Any] | None
    keeper: StateKeeper | None = None


def beginning(
    app: App,
    settings: Settings,
    *,
    sink: str,
    given: dict[str, Any] | None,
    refresh: str | None,
    leaves_rows_out: bool,
    config: Mapping[str, Any],
    given_config: Mapping[str, Any],
) -> Beginning:
    """Where a run begins.

    Args:
        given: what ``--state`` says.
        refresh: what ``--full-refresh`` says.
        leaves_rows_out: such a run neither reads nor writes a lake's state.
        config, given_config: see ``Fingerprint``.

    Raises:
        UsageError: ``--full-refresh`` names a stream that is not there, or none.
        ConfigError: the lake has this tap's rows from another config.
        StateError: the lake's state can't be read.
    """
    url = lake_of_sink(sink)
    if url is None or leaves_rows_out:
        names = _refreshed(app, refresh, given)
        return Beginning(given, without(given, names))
    from burler.lake.state import LakeState, StateKeeper, differing_config
    from burler.lake.store import open_store

    state = LakeState(open_store(url, options=settings.lake_options), settings.tap_id or app.name)
    stored = state.read()
    fingerprint = Fingerprint(app.config_form, config, given_config)
    other = None if stored is None else differing_config(state, stored, fingerprint)
    if other is not None and refresh != ALL:
        raise ConfigError(other)
    if given is None and stored is not None and refresh != ALL:
        given = stored.start(state.place)
        logger.info("%s: goes on from the state in the lake, of %s", app.name, stored.written)
    names = _refreshed(app, refresh, given)
    start = without(given, names)
    keeper = StateKeeper(
        state,
        begun=stored,
        start=start or {},
        fingerprint=fingerprint,
        refreshed=names,
        replaces=other is not None,
    )
    return Beginning(given, start, keeper)


def _refreshed(app: App, refresh: str | None, given: Mapping[str, Any] | None) -> set[str] | None:
    """The streams that begin anew; None: all."""
    if refresh == ALL:
        return None
    names = {name for name in map(str.strip, (refresh or "").split(",")) if name}
    if refresh is not None and not names:
        raise UsageError(
            "--full-refresh= names no stream. All of them: --full-refresh; some: --full-refresh=orders,items."
        )
    known = {*app.streams, *((given or {}).get("bookmarks") or {})}
    finds = app.discover is not None or any(spec.is_pattern for spec in app.streams.values())
    for name in sorted(names - known):
        if not finds:
            raise UsageError(
                f"--full-refresh: {app.name} has no stream '{name}'.{near_or_all(name, sorted(known), 'It has')}"
            )
        logger.warning("%s: --full-refresh: no state speaks of a stream '%s'", app.name, name)
    roots = {name: line_of(spec, app.streams)[-1].tap_stream_id for name, spec in app.streams.items()}
    wanted = {roots[name] for name in names if name in roots}
    names |= {name for name, root in roots.items() if root in wanted}
    if names:
        logger.info("%s: --full-refresh: %s", app.name, ", ".join(sorted(names)))
    return names


def without(state: dict[str, Any] | None, names: set[str] | None) -> dict[str, Any] | None:
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
