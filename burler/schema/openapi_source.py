"""A stream's schema from an API's own description: OpenAPI 3.0 and 3.1, Swagger 2.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from burler.call import callers_folder
from burler.errors import DeclarationError
from burler.http.origins import is_web
from burler.schema.documents import fetch, read_file, shown
from burler.schema.openapi_dialect import cut_cycles, to_json_schema, without_write_only
from burler.schema.refs import resolve_refs
from burler.schema.simplify import as_object, simplify
from burler.schema.sources import of_config
from burler.schema_tree import at, token, types_of
from burler.suggest import near_or_all

DocumentSource = str | Path | Callable[[Mapping[str, Any]], str | Path]

_OPERATION = re.compile(r"\s*(get|put|post|delete|options|head|patch|trace)\s+(/\S*)\s*", re.IGNORECASE)
_JSON_TYPE = re.compile(r"application/([\w.+-]+\+)?json|text/json|application/\*|\*/\*", re.IGNORECASE)
_MOST_LINKS = 50
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class OpenApi:
    """A schema in an OpenAPI document; see ``openapi``."""

    source: DocumentSource
    component: str
    base: Path
    rows: str | None = None
    shared: tuple[Path, ...] = ()
    http: bool = False
    recursive: str = "error"

    def load(self, *, where: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of the component's, or the operation's, records.

        Raises:
            DeclarationError: the document can't be read, the component is not there, it describes no object, or
                its references lead nowhere or in a circle.
            MissingExtra: the document is YAML and PyYAML is not installed.
        """
        source = self._source(where, config)
        document, base = _read_document(source, where=where)
        place = f"{where}: OpenAPI document {shown(str(source))}"
        try:
            pointer = _pointer(document, self.component, place)
            _prepare(document, pointer)
            if self.recursive == "open":
                cut_cycles(_at(document, pointer), lambda ref: _local(document, ref))
            resolved = resolve_refs(
                document, source=place, base=base, shared=self.shared, http=self.http, pointer=pointer
            )
            to_json_schema(resolved)  # what came from other documents
            schema = simplify(without_write_only(resolved))
            return self._records(schema, place)
        except RecursionError:
            raise DeclarationError(f"{place}: '{self.component}' is nested too deep.") from None
        except DeclarationError as error:
            if "refers to itself" in str(error) and self.recursive == "error":
                raise DeclarationError(f'{error}\n  openapi(..., recursive="open") leaves such places open.') from None
            raise

    def _source(self, where: str, config: Mapping[str, Any]) -> str | Path:
        source = of_config(self.source, config, what="the document", where=f"{where}: openapi")
        if not isinstance(source, str | Path) or not str(source):
            raise DeclarationError(f"{where}: openapi: the document is a path or a URL, not {type(source).__name__}.")
        if isinstance(source, str) and (is_web(source) or source.startswith("file:")):
            return source
        return self.base / source

    def _records(self, schema: Any, place: str) -> dict[str, Any]:
        names = self.rows.split(".") if self.rows else []
        for name in names:
            found = as_object(_item(schema)) or {"properties": {}}
            if name not in found["properties"]:
                known = ", ".join(list(found["properties"])[:_MOST_NAMES]) or "none"
                raise DeclarationError(
                    f"{place}: rows='{self.rows}': '{self.component}' has no field '{name}' there. Fields: {known}."
                )
            schema = found["properties"][name]
        out = as_object(_item(schema))
        if out is None:
            kinds = " or ".join(types_of(schema)) or "without a type"
            kinds = "an object without any" if kinds == "object" else kinds
            hint = " Say with rows= where the records lie." if not names else ""
            raise DeclarationError(
                f"{place}: '{self.component}' is no object with named fields (but {kinds}), so no stream's rows.{hint}"
            )
        return out


def openapi(
    file_or_url: DocumentSource,
    component: str,
    *,
    rows: str | None = None,
    shared: Sequence[str | Path] = (),
    http: bool = False,
    recursive: str = "error",
) -> OpenApi:
    """A schema from an OpenAPI document, as JSON or YAML.

    Args:
        file_or_url: a path, which counts from the folder of the module that calls this; a URL, which is fetched at
            each discovery and run; or a function of the config that gives one of them.
        component: a component (``"Contact"``, ``"#/components/schemas/Contact"``) or an operation
            (``"GET /contacts"``), whose JSON answer is taken. Of an array its items are.
        rows: where the records lie in it: ``"data.items"``.
        shared: folders where documents are looked for that are not beside this one.
        http: whether references to other documents on the web are followed.
        recursive: what to do with a schema that holds itself: "error", or "open" to admit anything there.

    Raises:
        ValueError: ``recursive`` or ``rows`` is neither of these.
    """
    if recursive not in ("error", "open"):
        raise ValueError(f"recursive={recursive!r} is unknown. Known: 'error', 'open'.")
    if rows is not None and not all(rows.split(".")):
        raise ValueError(f"rows={rows!r} is no path. Write names parted by dots, as in 'data.items'.")
    base = callers_folder()
    folders = [shared] if isinstance(shared, str | Path) else shared
    return OpenApi(file_or_url, component, base, rows, tuple(base / folder for folder in folders), http, recursive)


def _item(schema: Any) -> Any:
    """What an array holds; anything else as it is."""
    while isinstance(schema, Mapping) and set(types_of(schema)) - {"null"} == {"array"} and "items" in schema:
        schema = schema["items"]
    return schema


def _pointer(document: dict[str, Any], component: str, place: str) -> str:
    """Where in the document the schema stands, as ``#/...``."""
    operation = _OPERATION.fullmatch(component)
    if operation is not None:
        return _answer(document, operation[1].lower(), operation[2], place)
    if component.startswith("#"):
        if isinstance(_at(document, component), Mapping):
            return component
        raise DeclarationError(f"{place}: there is no schema at '{component}'.{_cure(document, component)}")
    for folder in ("#/components/schemas", "#/definitions"):
        if component in (_at(document, folder) or {}):
            return f"{folder}/{token(component)}"
    raise DeclarationError(f"{place}: there is no component '{component}'.{_cure(document, component)}")


def _cure(document: dict[str, Any], component: str) -> str:
    names = [*(_at(document, "#/components/schemas") or {}), *(_at(document, "#/definitions") or {})]
    return near_or_all(component.rpartition("/")[2], map(str, names), "Components")


def _answer(document: dict[str, Any], method: str, path: str, place: str) -> str:
    """The pointer of the schema of an operation's JSON answer."""
    called = f"{method.upper()} {path}"
    paths = document.get("paths")
    operations = {
        f"{verb.upper()} {name}": f"#/paths/{token(str(name))}"
        for name in (paths if isinstance(paths, Mapping) else ())
        for verb in _follow(document, f"#/paths/{token(str(name))}", place)[1]
        if isinstance(verb, str) and _OPERATION.fullmatch(f"{verb} {name}")
    }
    if called not in operations:
        same_path = [name for name in operations if name.partition(" ")[2] == path]
        near = near_or_all(called, operations, "Operations")
        cure = f" It has: {', '.join(same_path)}." if same_path else near
        raise DeclarationError(f"{place}: there is no operation '{called}'.{cure}")
    item, _ = _follow(document, operations[called], place)
    responses = _at(document, f"{item}/{method}/responses")
    codes = [str(code) for code in responses] if isinstance(responses, Mapping) else []
    good = sorted((code for code in codes if re.fullmatch(r"2(\d\d|XX)", code, re.IGNORECASE)), key=str.upper)
    code = next((code for code in ("200", *good, "default") if code in codes), None)
    if code is None:
        raise DeclarationError(f"{place}: '{called}' describes no successful answer (it has: {', '.join(codes)}).")
    pointer, response = _follow(document, f"{item}/{method}/responses/{code}", place)
    if isinstance(response.get("schema"), Mapping):  # Swagger 2.0
        return f"{pointer}/schema"
    content = response.get("content")
    media = list(content) if isinstance(content, Mapping) else []
    fitting = [name for name in media if _JSON_TYPE.fullmatch(str(name).partition(";")[0].strip())]
    fitting.sort(key=lambda name: not str(name).lower().startswith("application/json"))
    for name in fitting:
        if isinstance(_at(document, f"{pointer}/content/{token(str(name))}/schema"), Mapping):
            return f"{pointer}/content/{token(str(name))}/schema"
    said = f"only {', '.join(media)}" if media and not fitting else "none with a schema"
    raise DeclarationError(f"{place}: the answer {code} of '{called}' has no JSON schema ({said}).")


def _follow(document: dict[str, Any], pointer: str, place: str) -> tuple[str, Mapping[str, Any]]:
    """A place that is no schema (a path, an answer), its references followed inside the document."""
    for _ in range(_MOST_LINKS):
        node = _at(document, pointer)
        reference = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(reference, str):
            return pointer, node if isinstance(node, Mapping) else {}
        if not reference.startswith("#"):
            raise DeclarationError(
                f"{place}: '{pointer}' is in another document ({reference}); bundle the document, or name a component."
            )
        pointer = reference
    raise DeclarationError(f"{place}: the references at '{pointer}' lead in a circle.")


def _local(document: dict[str, Any], reference: str) -> Any:
    """The schema that a reference inside the document points to; None for any other."""
    found = _at(document, reference) if reference == "#" or reference.startswith("#/") else None
    return found if isinstance(found, dict) else None


def _at(document: Any, pointer: str) -> Any:
    """What stands at ``#/...``; None if nothing does."""
    try:
        return at(document, unquote(pointer.removeprefix("#")))
    except LookupError:
        return None


def _prepare(document: dict[str, Any], pointer: str) -> None:
    """Bring the schemas of a document that nobody else holds into JSON Schema's own words."""
    for folder in ("#/components/schemas", "#/definitions"):
        named = _at(document, folder)
        for schema in named.values() if isinstance(named, Mapping) else ():
            to_json_schema(schema)
    to_json_schema(_at(document, pointer))


def _read_document(source: str | Path, *, where: str) -> tuple[dict[str, Any], str | Path]:
    """An OpenAPI document of version 2.0 or 3.x, and the address or path that its references count from.

    Args:
        source: an http(s) URL, a ``file:`` URL, or a path.

    Raises:
        DeclarationError: it can't be read or fetched, or is no such document.
        MissingExtra: it is YAML and PyYAML is not installed.
    """
    words, base = f"{where}: OpenAPI document", source
    if is_web(str(source)):
        document, base = fetch(str(source), where=words, guess=True)
    else:
        base = Path(unquote(urlsplit(str(source)).path)) if str(source).startswith("file:") else Path(source)
        document = read_file(base, where=words, guess=True)
    name = f"{words} {shown(str(source))}"
    version = document.get("openapi", document.get("swagger")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or version is None:
        raise DeclarationError(f"{name} is no OpenAPI document: it has neither 'openapi' nor 'swagger' at its top.")
    if not re.match(r"(2\.0|3\.\d)", str(version)):
        raise DeclarationError(f"{name} is of version {version!r}; burler reads 2.0 and 3.x.")
    return document, base
