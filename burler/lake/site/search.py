"""The search's index: a script, since pages opened from a disk may load scripts and nothing else."""

from __future__ import annotations

import json

from burler.lake.site.facts import StreamFacts
from burler.lake.site.names import anchor
from burler.lake.site.words import cut

MOST_FIELDS = 300_000
_SHORT = 90


class Index:
    """Taps, streams and fields. A field's name and description stand there once, with all streams that have them."""

    def __init__(self) -> None:
        self._taps: list[tuple[str, str, str]] = []
        self._streams: list[tuple[int, str, str, str]] = []
        self._fields: dict[tuple[str, str], list[int]] = {}
        self._count = 0
        self.left_out = 0

    def add_tap(self, tap_id: str, page: str, description: str) -> None:
        """``page`` is the tap's folder."""
        self._taps.append((tap_id, page, cut(description, _SHORT)))

    def add_stream(self, facts: StreamFacts, page: str) -> None:
        """A stream of the tap that was added last. ``page`` is its file's name, without ending."""
        view = facts.view
        number = len(self._streams)
        description = view.fields.description if view else ""
        self._streams.append((len(self._taps) - 1, facts.stream, page, cut(description, _SHORT)))
        for field in view.fields.fields if view else ():
            if self._count == MOST_FIELDS:
                self.left_out += 1
                continue
            self._count += 1
            self._fields.setdefault((field.path, cut(field.description, _SHORT)), []).append(number)

    def script(self) -> bytes:
        """``window.BURLER_LAKE = {...};`` in ASCII."""
        document = {
            "taps": self._taps,
            "streams": self._streams,
            "fields": [
                [path, streams, description, "" if anchor(path) == f"f-{path}" else anchor(path)]
                for (path, description), streams in sorted(self._fields.items())
            ],
            "leftOut": self.left_out,
        }
        return f"window.BURLER_LAKE = {_dumps(document)};\n".encode("ascii")


def _dumps(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)
