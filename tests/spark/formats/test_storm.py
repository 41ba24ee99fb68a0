"""A short storm; ``make storm`` runs the long one."""

from __future__ import annotations

from typing import Any

import formats_storm
import pytest


@pytest.mark.parametrize("name", ["delta", "postgres"])
def test_storm(name: str, packages: None, request: Any, capsys: Any) -> None:
    if name == "postgres":
        request.getfixturevalue("server")  # skips where there is none
    assert formats_storm.main(["1", "--seed", "7", "--formats", name]) == 0, capsys.readouterr().out
