"""Whatever goes wrong: a STATE names a version of a source only if all of its rows are out, and counted."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from taps import FIELDS

import burler
from burler.testing import run_tap
from support.internals import signals

SEEDS = range(int(os.environ.get("BURLER_STORIES", "120")))
KIND = "test/version"


class World:
    """Sources with a version each; their rows tell which version of which source they are."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.versions = {f"s{number}": 1 for number in range(random.randint(1, 4))}
        self.rows = {name: random.randint(0, 4) for name in self.versions}
        self.children = random.random() < 0.4
        self.options: dict[str, Any] = random.choice(
            [
                {},
                {"versions": False},
                {"replication_key": "id"},
                {"replication_key": "id", "bookmark_strategy": "on_page"},
            ]
        )

    def change(self) -> None:
        """Some sources change."""
        for name in self.versions:
            if self.random.random() < 0.4:
                self.versions[name] += 1

    def numbers(self, name: str) -> list[int]:
        """The ids of a source's rows now: source, version and place in one number."""
        return [int(name[1:]) * 10_000 + self.versions[name] * 100 + i for i in range(self.rows[name])]


def tap_of(world: World, trouble: Any, stopper: signals.Stopper) -> burler.Tap:
    tap = burler.tap("tap-w")

    def step(place: str) -> None:
        what = trouble()
        if what == "error" and place != "child":
            raise ConnectionError("gone")
        if what == "error in a child" and place == "child":
            raise ConnectionError("gone")
        if what == "stop":
            stopper.handle(15, None)

    @tap.sync("t", key_properties="id", schema=FIELDS, **world.options)
    def rows(stream):
        wanted = [n for n, v in world.versions.items() if stream.source_state.get(KIND, source=n) != str(v)]
        if len(wanted) < len(world.versions):
            stream.not_modified()
        for name in wanted:
            for number in world.numbers(name):
                step("row")
                yield {"id": number}
            step("end")
            stream.source_state.set(KIND, str(world.versions[name]), source=name)
            step("behind")

    if world.children:

        @tap.sync("kids", parent="t", key_properties="id", schema=FIELDS)
        def kids(parent):
            step("child")
            yield {"id": parent["id"] * 10}

    return tap


def said(state: dict[str, Any]) -> dict[str, int]:
    """Which version of which source a STATE says is out."""
    entries = state.get("bookmarks", {}).get("t", {}).get("source_state", [])
    return {entry["source"]: int(entry["value"]) for entry in entries}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_version_is_named_ahead_of_its_rows(seed: int):
    chance = random.Random(seed)
    world = World(chance)
    streams = ["t", "kids"] if world.children else ["t"]
    out: dict[str, set[int]] = {name: set() for name in streams}
    tables: dict[str, dict[int, int | None]] = {name: {} for name in streams}  # a target that drops rows
    state: dict[str, Any] | None = None

    def judge(value: dict[str, Any]) -> None:
        for name, version in said(value).items():
            count = world.rows[name]
            numbers = [int(name[1:]) * 10_000 + version * 100 + i for i in range(count)]
            assert out["t"] >= set(numbers), (seed, name, version)
            if world.children:
                assert out["kids"] >= {number * 10 for number in numbers}, (seed, name, version)

    for turn in range(6):
        quiet = turn == 5
        left = chance.randint(0, 14)

        def trouble(quiet: bool = quiet) -> str:
            nonlocal left
            left -= 1
            return "" if quiet or left else chance.choice(["error", "error in a child", "stop", ""])

        stopper = signals.Stopper()
        settings = {"page_max_rows": chance.choice([1, 2, 1000]), "parent_buffer_rows": chance.choice([1, 100])}
        run = run_tap(tap_of(world, trouble, stopper), settings, state=state, stopper=stopper)
        for message in run.messages:
            if message["type"] == "RECORD":
                out[message["stream"]].add(message["record"]["id"])
                tables[message["stream"]][message["record"]["id"]] = message.get("version")
            elif message["type"] == "ACTIVATE_VERSION":
                table = tables[message["stream"]]
                for number in [number for number, version in table.items() if version != message["version"]]:
                    del table[number]
            elif message["type"] == "STATE":
                judge(message["value"])
        state = run.states[-1] if run.states else state
        if not quiet:
            world.change()
    assert said(state or {}) == world.versions
    now = {number for name in world.versions for number in world.numbers(name)}
    assert set(tables["t"]) >= now, "rows that the source has were dropped"
    if world.children:
        assert set(tables["kids"]) >= {number * 10 for number in now}
