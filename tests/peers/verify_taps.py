"""Installs the taps of others, verifies each, and prints a table: ``python tests/peers/verify_taps.py [NAME ...]``.

Exit code 1 if one has a finding that nobody has looked at yet (verify_verdicts.py).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import peers_environment
import postgres_server
import verify_running
from verify_verdicts import VERDICTS

from support import objects


@contextlib.contextmanager
def _servers():
    with contextlib.ExitStack() as stack:

        @functools.cache
        def s3():
            return stack.enter_context(objects.server("verify-taps-secret-0451"))

        yield verify_running.Servers(
            postgres=functools.cache(lambda: stack.enter_context(postgres_server.database(shared=False))), s3=s3
        )


def _row(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n")


def main(*names: str) -> int:
    """Verify those that are named, or all."""
    new = 0
    _row("tap", "code", "stream", "field", "said", "by hand")
    _row(*["---"] * 6)
    with _servers() as servers:
        for tap in verify_running.TAPS:
            if names and tap.package not in names and tap.name not in names:
                continue
            try:
                verify_running.programs_of(tap)
            except peers_environment.NotInstalled as error:
                _row(tap.package, "", "", "", "", f"can't be installed: {error}")
                continue
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                verification = verify_running.verified(tap, Path(folder), servers)
            seconds = time.monotonic() - began
            found = verify_running.found_in(verification)
            _row(f"{tap.package} ({tap.library})", f"{len(found)} findings", "", "", f"{seconds:.1f} s", "")
            for key, message in found.items():
                verdict = VERDICTS.get(tap.package, {}).get(key)
                new += verdict is None
                _row("", *key, message, verdict or "NEW")
            for key in VERDICTS.get(tap.package, {}).keys() - found.keys():
                _row("", *key, "(not found this time)", VERDICTS[tap.package][key])
            sys.stdout.flush()
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
