"""Paths with places in them, such as ``/contacts/{id}/notes``: checked when they are declared, and filled."""

from __future__ import annotations

import datetime
import keyword
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

from burler.http.request import as_text

_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A path and the names of its places, in their order.

    Attributes:
        text: as the author wrote it.
        names: each once; a place that stands twice gets the same value.
    """

    text: str
    names: tuple[str, ...]

    def fill(self, values: dict[str, Any], method: str) -> str:
        """The path with values in its places, escaped so that none of them can lead elsewhere.

        Args:
            values: for each name. method: who asks, for messages.

        Raises:
            ValueError: an empty value, or one that would change the path. TypeError: one that is no text or number.
        """
        texts = {name: _text(values[name], f"{method}(): '{name}' of {self.text}") for name in self.names}
        return _PLACE.sub(lambda found: texts[found[1]], self.text)


def path_template(text: Any) -> PathTemplate:
    """Read a path.

    Raises:
        ValueError: what is wrong with it.
    """
    if not isinstance(text, str) or not text.strip() or any(letter.isspace() for letter in text):
        raise ValueError(f"{text!r:.80} is no path, such as '/contacts/{{id}}/notes'")
    if re.match(r"[a-z][a-z0-9+.-]*:", text, re.IGNORECASE) or text.startswith("//"):
        raise ValueError(f"'{text:.80}' is a whole URL; the path stands behind base_url: '/contacts'")
    if "#" in text or "{" in _PLACE.sub("", text) or "}" in _PLACE.sub("", text):
        raise ValueError(f"'{text:.80}' has a brace that is no place such as {{id}}, or a '#'")
    names = [found[1] for found in _PLACE.finditer(text)]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
            raise ValueError(
                f"'{text:.80}': {{{name}}} can't be the name of a parameter; write letters, digits and '_': "
                f"{{{suggested_name(name)}}}"
            )
    if "{" in text.partition("?")[2]:
        raise ValueError(f"'{text:.80}' has a place in the query; say params={{...}} in the call instead")
    return PathTemplate(text, tuple(dict.fromkeys(names)))


def suggested_name(text: str) -> str:
    """A name that Python takes, made of a text: ``account-id`` -> account_id."""
    name = re.sub(r"\W+", "_", text).strip("_").lower() or "value"
    return f"_{name}" if name[0].isdigit() else f"{name}_" if keyword.iskeyword(name) else name


def name_of_path(text: str) -> str:
    """What to call an endpoint, from its path: ``/contacts`` is contacts, ``/contacts/{id}`` contacts_by_id,
    ``/contacts/{id}/notes`` contacts_notes, ``/v1/sales.json`` v1_sales_json."""
    parts = [part for part in text.partition("?")[0].split("/") if part]
    words = [part for part in parts if not _PLACE.search(part)]
    last = _PLACE.search(parts[-1]) if parts else None
    name = "_".join(words) or "root"
    return suggested_name(f"{name}_by_{last[1]}" if last else name)


def _text(value: Any, where: str) -> str:
    if value is None or value == "":
        raise ValueError(f"{where} is {'None' if value is None else 'empty'}; a path needs a value there.")
    if not isinstance(value, str | int | float | Decimal | UUID | datetime.date) or isinstance(value, bool):
        raise TypeError(f"{where} is a value of type {type(value).__name__}; a path takes text and numbers.")
    text = as_text(value)
    if text in (".", ".."):
        raise ValueError(f"{where} is '{text}', which would lead to another path.")
    return quote(text, safe="")
