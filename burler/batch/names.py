"""What names of batch files are made of, so that burler knows its own again."""

from __future__ import annotations

import re
import secrets
import zlib

from burler.localfile import MOST_OF_A_NAME

NAME = re.compile(
    r"(?P<tap>[A-Za-z0-9_-][A-Za-z0-9_.-]*?)--(?P<stream>[A-Za-z0-9_.-]+)-(?P<run>[0-9a-f]{12})-(?P<number>[0-9]{5,})"
    r"\.(?:(?:jsonl|csv)(?:\.gz|\.zst)?|parquet|arrow)"
)
"""``<tap>--<stream>-<run>-<n>.<ext>``: what stands behind the prefix."""

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}-(?P<name>.*)")
"""A file that is being written. Of a long name it has the beginning alone."""

_ALLOWED = re.compile(r"[A-Za-z0-9_./-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_CHARACTERS = 50  # of a tap and of a stream: with prefix and run, a name may have 255


def drawn() -> str:
    """What tells the files of one run from those of others."""
    return secrets.token_hex(6)


def file_name(tap: str, stream: str, run_id: str, number: int, extension: str) -> str:
    """``<tap>--<stream>-<run>-<n>.<ext>``, of letters, digits and ``-_.`` alone: some targets do not decode what else a
    URL needs."""
    return f"{plain(tap)}--{plain(stream)}-{run_id}-{number:05d}.{extension}"


def plain(name: str) -> str:
    """A name in such letters; one that had others, or is long, gets a number that tells it from its likes."""
    made = _NOT_IN_NAMES.sub("_", name).lstrip(".")[:_MOST_CHARACTERS] or "_"
    if made == name:
        return made
    return f"{made}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def is_plain(text: str) -> bool:
    """Whether a text has only characters that burler puts into the names of batch files."""
    return _ALLOWED.fullmatch(text) is not None


def is_ours(path: str, prefix: str = "", *, hidden: bool = False) -> bool:
    """Whether a path below a folder of batch files is one of burler's under a prefix. It hides no folder.

    Args:
        hidden: one that was being written.
    """
    *folders, name = path.split("/")
    if folders:
        if not path.startswith(prefix) or any(folder.startswith(".") for folder in folders):
            return False
        prefix = ""
    if not hidden:
        return name.startswith(prefix) and NAME.fullmatch(name, len(prefix)) is not None
    found = TEMPORARY.fullmatch(name)
    if found is None or not found["name"].startswith(prefix):
        return False
    return len(found["name"]) == MOST_OF_A_NAME or NAME.fullmatch(found["name"], len(prefix)) is not None
