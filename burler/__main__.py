"""``python -m burler``, and the script ``burler``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Ctrl-C while it is still being imported ends the process without Python's traceback."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody wants it ignored
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from burler.cli import main as commands

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    commands.main()


if __name__ == "__main__":
    main()
