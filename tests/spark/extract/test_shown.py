"""What goes to executors, as whatever prints it would show it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from extracted import FOREIGN, PARTS, app

from burler.spark import extract


@pytest.mark.parametrize("kind", ["app", "any other tap"])
def test_what_goes_to_executors_shows_no_secret(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whatever prints a task (a log, an error of a library's, a debugger): config, state, catalog and the options of
    the lake don't stand in it."""
    shown, dumps = [], pickle.dumps

    def noted(value: Any, *given: Any, **more: Any) -> bytes:
        if type(value).__module__.startswith("burler"):
            shown.append(repr(value))
        return dumps(value, *given, **more)

    secrets = {name: f"hush-{name}-5b1e" for name in ("token", "mark", "lake", "words")}
    config = {"token": secrets["token"], "lake_options": {"auto_mkdir": True, "secret": secrets["lake"]}}
    state = {"bookmarks": {"plain": {"seen": secrets["mark"]}}}
    monkeypatch.setattr(pickle, "dumps", noted)
    if kind == "app":
        path = app(tmp_path, PARTS, "tap_parts_shown")
        extract(spark, path, tmp_path / "lake", config=config, state=state, select="plain")
    else:
        path = app(tmp_path, FOREIGN, "tap_foreign_shown")
        command = f"{sys.executable} {path} --token {secrets['words']}"
        extract(spark, None, tmp_path / "lake", exec=command, config=config, state=state, select="one")
    assert shown, "the task was looked at"
    for secret in secrets.values():
        assert not [text for text in shown if secret in text]
