"""``singerlake.lock`` as a JSON document (Singerlake Pt2, 5).

::

    {"writer-id": "crm-7-1f2e3d4c", "acquired": "2024-01-02T12:00:00.000000Z", "updated": "2024-01-02T12:04:30.000000Z",
     "epoch": 3, "ttl-ms": 300000, "machine": "6b1f..."}

``machine`` names the running system where the store lets the kernel tell whether the holder lives (a local disk).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from burler import times

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class LockFile:
    """What a lock says of its holder.

    ``acquired`` and ``updated`` are RFC 3339 by the holder's clock: for people, nothing compares them. ``ttl_ms``: how
    long the holder may leave it unchanged; None where it does not say. ``machine``: see the module.
    """

    writer_id: str
    acquired: str = ""
    updated: str = ""
    epoch: int = 0
    ttl_ms: int | None = None
    machine: str | None = None

    def to_bytes(self) -> bytes:
        """As it stands in the store."""
        wire: dict[str, object] = {
            "writer-id": self.writer_id,
            "acquired": self.acquired,
            "updated": self.updated,
            "epoch": self.epoch,
            "ttl-ms": self.ttl_ms,
        }
        if self.machine is not None:
            wire["machine"] = self.machine
        return msgspec.json.encode(wire) + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> LockFile:
        """From a store. It never fails: a lock that can't be read is the lock of somebody unknown, and grows stale."""
        try:
            wire = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            wire = None
        if not isinstance(wire, dict):
            return cls("unknown (the file is no JSON object)")
        return cls(
            writer_id=_text(wire.get("writer-id")) or "unknown (the file names nobody)",
            acquired=_text(wire.get("acquired")),
            updated=_text(wire.get("updated", wire.get("refreshed"))),  # a later edit of the text renamed the key
            epoch=_whole(wire.get("epoch")) or 0,
            ttl_ms=_whole(wire.get("ttl-ms")) or None,
            machine=_text(wire.get("machine")) or None,
        )

    def beaten(self, now: dt.datetime, epoch: int) -> LockFile:
        """The same with a newer ``updated``, also where the clock was put back, and the epoch of the claim: no two
        contents are ever equal, so that tags which stand for contents (ETags) tell them apart."""
        text = times.format_time(now)
        if text <= self.updated:
            text = times.format_time(times.moment(self.updated) + _MICROSECOND)
        return replace(self, updated=text, epoch=epoch)


def this_machine() -> str | None:
    """A name of the system that runs now, new after each boot, the same in all its containers; None: there is none."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
