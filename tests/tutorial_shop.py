"""The shop of docs/tutorial.md, open on a port of its own, and the tap on it, for pages that go on from there."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.console_pages import steps

DOCS = Path(__file__).resolve().parent.parent / "docs"
ORDER = {"id": "integer", "customer": "string", "total": "number", "updated_at": "string"}


@contextlib.contextmanager
def shop_in(folder: Path) -> Iterator[int]:
    """Save the tutorial's files and open the shop; gives its port. ``env`` is the environment that tests run in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for kind, name, text in steps((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if kind == "save":
            (folder / name).write_text(text.replace("8321", str(port)), encoding="utf-8")
    properties = {name: {"type": kind} for name, kind in ORDER.items()}
    properties["updated_at"]["format"] = "date-time"
    (folder / "orders.schema.json").write_text(json.dumps({"type": "object", "properties": properties}))
    (folder / "env").symlink_to(sys.prefix)
    with subprocess.Popen(
        [sys.executable, "shop.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as shop:
        assert shop.stdout is not None and "open" in shop.stdout.readline()
        try:
            yield port
        finally:
            shop.terminate()


def saved(page: str) -> dict[str, str]:
    """What a page has its reader save: text by name."""
    return {name: text for kind, name, text in steps((DOCS / page).read_text(encoding="utf-8")) if kind == "save"}


def fenced(page: str, kind: str) -> list[str]:
    """The blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
