"""What singer-check-tap says of messages: texts by name as JSON on stdin; by name, what it says, or null.

Run in the environment that has singer-tools. Its own function is called, as many times as there are texts: a process
for each would take a minute.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys

from singertools.check_tap import summarize_output


def said_of(text):
    """The reason why it ends with an exit code that is not 0; None if it is content."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            summarize_output(io.StringIO(text))
    except SystemExit:
        return out.getvalue().strip().splitlines()[-1]
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


if __name__ == "__main__":
    logging.disable()
    print(json.dumps({name: said_of(text) for name, text in json.load(sys.stdin).items()}))
