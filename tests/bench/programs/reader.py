"""Reads a pipe to its end and throws away what comes. Given a file, it writes there how many bytes were STATE."""

import os
import sys

buffer = bytearray(1 << 20)


def count(told: str) -> None:
    """Tell STATE lines from all others, as they come, and write what there was as JSON."""
    marks = (b'{"type":"STATE"', b'{"type": "STATE"')
    states = state_bytes = other_bytes = last_bytes = 0
    rest = b""
    while got := os.readv(0, [buffer]):
        block, end, tail = (rest + buffer[:got]).rpartition(b"\n")
        if not end:
            rest = tail
            continue
        rest, at = tail, -1
        state_before = state_bytes
        while True:
            # A line begins where the block does, or behind a line end; JSON has none of those within.
            begins = [0] if at < 0 and block.startswith(marks) else []
            begins += [found + 1 for mark in marks if (found := block.find(b"\n" + mark, max(at, 0))) >= 0]
            if not begins:
                break
            begin = min(begins)
            at = block.find(b"\n", begin)
            at = len(block) if at < 0 else at
            last_bytes = at + 1 - begin
            states, state_bytes = states + 1, state_bytes + last_bytes
        other_bytes += len(block) + 1 - (state_bytes - state_before)
    with open(told, "w") as file:
        file.write(
            f'{{"states": {states}, "state_bytes": {state_bytes}, "other_bytes": {other_bytes + len(rest)}, '
            f'"last_bytes": {last_bytes}}}'
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        count(sys.argv[1])
    while os.readv(0, [buffer]):
        pass
