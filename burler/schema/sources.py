"""Where a stream's JSON Schema comes from: a file, a dict, or a function of the tap."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from burler.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A schema in a JSON file."""

    path: Path

    def load(self) -> Any:
        """The schema.

        Raises:
            DeclarationError: the file is missing, unreadable, or no JSON.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
        except OSError as error:
            raise DeclarationError(f"schema file {self.path}: {error.strerror}. Is the path right?") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DeclarationError(f"schema file {self.path} is not JSON: {error}.") from None


@dataclass(frozen=True, slots=True)
class Generated:
    """The schema comes from a function of the tap, decorated with ``@tap.schema(...)``."""


generated = Generated()

SchemaSource = JsonFile | Generated | Mapping[str, Any]


def json_file(path: str | Path) -> JsonFile:
    """A schema file; a relative path counts from the folder of the module that calls this."""
    base = Path(str(sys._getframe(1).f_globals.get("__file__", "x"))).resolve().parent
    return JsonFile(base / path)
