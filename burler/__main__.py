"""``python -m burler``, and the script ``burler``."""

from __future__ import annotations

import signal
import sys

from burler.cli import hangups


def main() -> None:
    """Run the command line. While it is still being imported Ctrl-C ends the process without Python's traceback, and a
    SIGHUP does not end what may be a tail."""
    if sys.argv[1:2] == ["run"]:
        hangups.hold()
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody wants it ignored
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from burler.cli import main as commands

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    commands.main()


if __name__ == "__main__":
    main()
