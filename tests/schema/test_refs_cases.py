"""A table of references, in the words of five drafts, judged by jsonschema: data/reference_cases.json.

The table is written in the words of 2020-12; for older drafts ``$defs``, ``$id`` and ``$anchor`` are put into theirs.
``BASE`` is the address of a server on this machine that has the case's ``documents``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

from burler.schema import resolve_refs
from support.servers import serving

CASES = json.loads((Path(__file__).parent / "data" / "reference_cases.json").read_text())
DRAFTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def in_words_of(draft, node):
    """The schema as an author of that draft writes it."""
    if isinstance(node, list):
        return [in_words_of(draft, item) for item in node]
    if not isinstance(node, dict):
        return node.replace("/$defs/", "/definitions/") if isinstance(node, str) and draft.startswith("draft") else node
    out = {}
    for key, value in node.items():
        if draft.startswith("draft"):
            identity = "id" if draft == "draft-04" else "$id"
            if key == "$anchor":
                key, value = identity, f"#{value}"
            elif key == "$id":
                key = identity
            elif key == "$defs":
                key = "definitions"
        out[key] = in_words_of(draft, value) if key != "enum" else value
    return out


@pytest.fixture(scope="module")
def server():
    """One that has the documents of the case that is looked at."""
    with pytest.MonkeyPatch.context() as patched, serving(lambda asked: found.documents[asked.path[1:]]) as found:
        patched.setenv("no_proxy", "127.0.0.1")
        yield found


@pytest.mark.parametrize(
    ("case", "draft"),
    [
        pytest.param(case, draft, id=f"{case['about']}-{draft}")
        for case in CASES
        for draft in DRAFTS
        if draft in case.get("drafts", DRAFTS)
    ],
)
def test_case(case, draft, server):
    server.documents = {
        name: {"$schema": DRAFTS[draft], **in_words_of(draft, document)}
        for name, document in case.get("documents", {}).items()
    }
    schema = json.loads(json.dumps(in_words_of(draft, case["schema"])).replace("BASE", server.url))
    out = resolve_refs({"$schema": DRAFTS[draft], **schema}, source="x", http=bool(server.documents))
    judge = Draft4Validator(out)
    for value in case["valid"]:
        assert judge.is_valid(value), (value, out)
    for value in case["invalid"]:
        assert not judge.is_valid(value), (value, out)


def test_cases_as_files(tmp_path):
    """The cases with documents once more, these beside the schema."""
    seen = 0
    for number, case in enumerate(case for case in CASES if "documents" in case):
        folder = tmp_path / str(number)
        for name, document in case["documents"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(json.dumps(document))
        schema = json.loads(json.dumps(case["schema"]).replace("BASE/", ""))
        judge = Draft4Validator(resolve_refs(schema, source="x", base=folder / "all.json"))
        assert all(judge.is_valid(value) for value in case["valid"])
        assert not any(judge.is_valid(value) for value in case["invalid"])
        seen += 1
    assert seen == 4
