"""What a tap offers to its functions while they run: sugar for the parameter ``stream``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from burler.context import current_run
from burler.errors import BurlerError


class InsideRun:
    """The part of :class:`burler.Tap` that reads the running stream; each raises BurlerError outside of one."""

    def get_bookmark(self) -> Any:
        """The running stream's bookmark; the same as ``stream.bookmark``."""
        return current_run("tap.get_bookmark()", self).bookmark

    def stream_metadata(self) -> Mapping[str, Any]:
        """The running stream's own metadata."""
        return current_run("tap.stream_metadata()", self).metadata

    @property
    def key_properties(self) -> tuple[str, ...]:
        """The running stream's key properties."""
        return current_run("tap.key_properties", self).key_properties

    def emit_record(self, record: Mapping[str, Any], stream: str | None = None) -> None:
        """Emit one row from anywhere in a sync function; the same as ``stream.emit_record``.

        Args:
            stream: the stream that it belongs to; by default the one that is running.
        """
        current_run("tap.emit_record()", self).emit_record(record, stream)

    def emit_records(self, records: Iterable[Mapping[str, Any]], stream: str | None = None) -> None:
        """Emit several rows; see ``emit_record``."""
        current_run("tap.emit_records()", self).emit_records(records, stream)

    def write_metadata(self, key: str, value: Any) -> None:
        """Write metadata of the node that a ``@tap.metadata`` function is called for.

        Raises:
            BurlerError: outside of such a function.
            DeclarationError: an unknown key, or one that only users write.
        """
        run = current_run("tap.write_metadata()", self, declared_with="@tap.metadata")
        if run.field is None:
            raise BurlerError(
                f"stream '{run.name}': tap.write_metadata() was called outside a @tap.metadata function; call it there."
            )
        run.field.set(key, value)
