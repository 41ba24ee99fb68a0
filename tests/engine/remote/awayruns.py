"""Runs whose parts run one by one, each on a tap and config that went through a pickle, as they do elsewhere."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import burler
from burler.testing import MemorySink, TapRun, without_times
from support.internals import runtime_away


@dataclass
class AwayRun:
    """What came of it: the messages of each part, the activations at the end, and the merged state."""

    state: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    ends: list[runtime_away.PartEnd] = field(default_factory=list)
    errors: dict[str, BaseException] = field(default_factory=dict)

    def records(self, stream: str) -> list[dict[str, Any]]:
        return [m["record"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]


def run_away(
    tap: burler.Tap,
    config: dict[str, Any] | None = None,
    *,
    state: dict[str, Any] | None = None,
    select: str | None = None,
    order: Callable[[list[runtime_away.Part]], list[runtime_away.Part]] = list,
    lost: Callable[[runtime_away.Part], bool] = lambda part: False,
) -> AwayRun:
    """All streams of a tap, part by part, in the order that ``order`` gives. ``lost``: nobody hears of these again."""
    planning = runtime_away.Planning(*runtime_away.open_session(tap.seal(), config or {}), state=state, select=select)
    merge, run = runtime_away.Merge(planning.state), AwayRun()
    for stream in planning.streams:
        parts = planning.parts(stream)
        begun = dict(planning.state)
        for part in order(parts):
            sent: runtime_away.Part = pickle.loads(pickle.dumps(part))
            sink = MemorySink()
            end = runtime_away.run_part(
                tap.seal(), sent, config=config or {}, state=sent.state_for(begun), select=select, sink=sink
            )
            if lost(part):
                merge.lost(part, "its worker is gone")
                continue
            run.messages += sink.messages
            run.ends.append(pickle.loads(pickle.dumps(end)))
            merge.add(run.ends[-1])
        run.messages += [message.to_wire() for message in merge.finish(stream)]
    planning.session.close()
    run.state, run.errors = merge.state, merge.errors
    return run


def shuffled(seed: int) -> Callable[[list[runtime_away.Part]], list[runtime_away.Part]]:
    """Parts end in any order."""

    def order(parts: list[runtime_away.Part]) -> list[runtime_away.Part]:
        mixed = list(parts)
        random.Random(seed).shuffle(mixed)
        return mixed

    return order


def same_state(away: AwayRun, local: TapRun) -> bool:
    """Equal states, but for the times that versions are made of."""
    states = [{"type": "STATE", "value": state} for state in (away.state, local.result.state)]
    return without_times(states[:1]) == without_times(states[1:])
