"""What `burler verify` says of a tap, and whether that is more than it says of the correct one."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shop_server import Shop

TOKEN = "tk_51Hq7ZcVbR9wXe2LmN"
SECONDS = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verify said of a tap."""

    exit_code: int
    findings: tuple[dict[str, Any], ...] = ()
    problem: str = ""  # why there is no verdict
    seconds: float = field(default=0.0, compare=False)

    def faults(self) -> set[tuple[str, str]]:
        """Code and stream of errors and warnings."""
        return {
            (one["code"], one.get("stream") or "") for one in self.findings if one["severity"] in ("error", "warning")
        }

    def codes(self, correct: Verdict) -> list[str]:
        """The codes that the correct tap does not have."""
        return sorted({code for code, _ in self.faults() - correct.faults()})

    def finds(self, correct: Verdict) -> bool:
        """Whether it has something against this tap that it has not against the correct one."""
        return not self.problem and bool(self.codes(correct))

    def is_clean(self) -> bool:
        """Whether it has nothing against this tap."""
        return not self.problem and not self.exit_code and not self.faults()


@contextmanager
def place(folder: Path) -> Iterator[Path]:
    """A shop that serves, and the config for it."""
    with Shop(TOKEN).running() as shop:
        config = folder / "config.json"
        content = {"base_url": shop.url, "api_token": TOKEN, "start_date": "2023-12-01T00:00:00Z"}
        config.write_text(json.dumps(content), encoding="utf-8")
        yield config


def verify(tap: Path, config: Path, *flags: str) -> Verdict:
    """Run `burler verify` on a tap, with further flags."""
    command = shlex.join([sys.executable, str(tap), "--config", str(config)])
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "burler", "verify", "--exec", command, "--format", "json", *flags],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=config.parent,
        )
    except subprocess.TimeoutExpired:
        return Verdict(-1, problem=f"verify took more than {SECONDS} s", seconds=time.monotonic() - begun)
    seconds = time.monotonic() - begun
    try:
        findings = tuple(json.loads(done.stdout)["findings"])
    except (ValueError, KeyError):
        return Verdict(done.returncode, problem=f"no JSON from verify: {done.stderr[-2000:]}", seconds=seconds)
    return Verdict(done.returncode, findings, seconds=seconds)
