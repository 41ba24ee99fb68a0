"""docs/references.md says what is true: its snippets run, its errors come."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import burler
from burler.errors import DeclarationError
from burler.schema import resolve_refs

PAGE = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_snippets_run():
    declaring, plain = SNIPPETS
    exec(compile(plain, "references.md", "exec"), {})
    tap = burler.tap("tap-x")
    exec(compile(declaring, "references.md", "exec"), {"tap": tap, "burler": burler, "__name__": "snippet"})
    with pytest.raises(DeclarationError) as gaps:  # the page leaves the functions out; what it says was taken in
        tap.seal()
    assert all(f"stream '{name}'" in str(gaps.value) for name in ("contacts", "orders", "notes"))


def test_nullable_as_the_page_has_it():
    address = {"type": "object", "properties": {}}
    union, both = re.findall(r'`(\{"(?:anyOf|\$ref)".*?\})`', PAGE)
    for text, wanted in (
        (union, {"anyOf": [address, {"type": "null"}]}),
        (both, address),
    ):
        schema = json.loads(text.replace("address.json", "#/$defs/a"))
        document = {"properties": {"x": schema}, "$defs": {"a": address}}
        assert resolve_refs(document, source="x")["properties"]["x"] == wanted


ADDRESS = {"properties": {"owner": {"$ref": "../contact.json"}}}
MISSPELT = {"definitions": {"address": {}}, "items": {"$ref": "#/definitions/adress"}}
DOUBLING = {f"x{i}": {"items": [{"$ref": f"#/$defs/x{i + 1}"}] * 2} for i in range(30)}
DEEP = {f"x{i}": {"items": {"$ref": f"#/$defs/x{i + 1}"}} for i in range(80)}


@pytest.mark.parametrize(
    ("row", "files"),
    [
        ("a cycle", {"contact.json": {"$ref": "parts/address.json"}, "parts/address.json": ADDRESS}),
        ("no such definition", {"a.json": {"$ref": "contact.json"}, "contact.json": MISSPELT}),
        ("no such file", {"a.json": {"$ref": "address.json"}}),
        ("a broken file", {"a.json": {"$ref": "address.json"}, "address.json": '{"type": "object'}),
        ("http without leave", {"a.json": {"$ref": "https://example.com/x.json"}}),
        ("a few lines that ask", {"a.json": {"$ref": "#/$defs/x0", "$defs": {**DOUBLING, "x30": {}}}}),
        ("more than 64 schemas", {"a.json": {"$ref": "#/$defs/x0", "$defs": {**DEEP, "x80": {}}}}),
    ],
)  # fmt: skip
def test_errors_as_the_page_has_them(tmp_path, row, files):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DeclarationError) as caught:
        burler.json_file(tmp_path / next(iter(files))).load(where="stream 'a'")
    [shown] = re.findall(rf"\| {row}[^|]*\| `(.*?)` \|", PAGE)
    for part in shown.replace("/tap/schemas", str(tmp_path)).split("..."):
        assert re.sub(r"\(byte \d+\)", "", part).strip(" .") in re.sub(r"\(byte \d+\)", "", str(caught.value))


def test_the_error_without_a_folder():
    [shown] = re.findall(r"\| a relative reference[^|]*\| `(.*?) \.\.\.` \|", PAGE)
    with pytest.raises(DeclarationError, match=re.escape(shown)):
        resolve_refs({"$ref": "x.json"}, source="x")


def test_a_key_that_stands_twice_as_the_page_has_it(tmp_path):
    path = tmp_path / "address.json"
    path.write_text('{\n"type": "object",\n"properties": {},\n"type": "string"\n}')
    [shown] = re.findall(r"\| a key that stands twice \| `(.*?)` \|", PAGE)
    with pytest.raises(DeclarationError, match=re.escape(shown.replace("/tap/schemas", str(tmp_path)))):
        burler.json_file(path).load()
