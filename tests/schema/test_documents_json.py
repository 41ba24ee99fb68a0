"""The text of a JSON document: one value, or one clear error."""

from __future__ import annotations

import pytest

from burler.errors import DeclarationError
from support.internals import documents_json


def test_any_value_with_or_without_a_byte_order_mark():
    assert documents_json.load_json(b'\xef\xbb\xbf{"streams": []}', named="it") == {"streams": []}
    assert documents_json.load_json(b"5", named="it") == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"{'streams': []}", "not JSON"),
        (b'{"streams": [}', "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        ('{"streams": []}'.encode("utf-16"), "not UTF-8"),
        (b'{"streams": [], "streams": []}', "'streams' is there twice"),
        (b"[" * 100_000, "nested too deep"),
    ],
    ids=["empty", "quotes", "broken", "nan", "utf-16", "twice", "deep"],
)
def test_what_is_no_json(text, words):
    with pytest.raises(DeclarationError, match=words):
        documents_json.load_json(text, named="it")
