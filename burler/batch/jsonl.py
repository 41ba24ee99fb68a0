"""JSON lines: each row as it came, packed or not. The proposal's default, which every target of BATCH reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.batch.encoders import Write, packer
from burler.batch_config import Encoding


class JsonlLayout:
    """Lines hold whatever rows hold."""

    def remarks(self) -> list[str]:
        """Nothing is lost."""
        return []


def layout(encoding: Encoding, schema: Mapping[str, Any], stream: str) -> JsonlLayout:
    """See ``encoders.layout_of``."""
    return JsonlLayout()


def open_file(encoding: Encoding, layout: JsonlLayout, write: Write) -> JsonlEncoder:
    """See ``encoders.open_encoder``."""
    return JsonlEncoder(encoding, write)


class JsonlEncoder:
    """One file of JSON lines."""

    def __init__(self, encoding: Encoding, write: Write) -> None:
        self._packer = packer(encoding)
        self._write = write
        self.size_bytes = 0

    def rows(self, lines: bytes | bytearray | memoryview, count: int) -> None:
        """See ``Encoder.rows``."""
        self.size_bytes += len(lines)
        ready = self._packer.compress(lines)
        if ready:
            self._write(ready)

    def table(self, batch: Any) -> None:
        """JSON lines take no columns."""
        raise NotImplementedError

    def finish(self) -> None:
        """See ``Encoder.finish``."""
        rest = self._packer.flush()
        if rest:
            self._write(rest)

    def abandon(self) -> None:
        """Nothing is held."""
