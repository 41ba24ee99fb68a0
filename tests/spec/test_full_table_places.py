"""What a state says of a full table while it is read may go with its end; a bookmark may not (B316)."""

import json

import pytest

from burler.spec import check_messages


@pytest.mark.parametrize(("method", "codes"), [("FULL_TABLE", []), ("INCREMENTAL", ["B316"])])
def test_a_place_that_goes_once_the_table_is_read(method, codes):
    root = {"inclusion": "available", "selected": True, "forced-replication-method": method}
    if method == "INCREMENTAL":
        root["replication-key"] = "page"
    fields = {"id": {"type": "integer"}, "page": {"type": "integer"}}
    stream = {
        "tap_stream_id": "shops",
        "stream": "shops",
        "key_properties": ["id"],
        "schema": {"type": "object", "properties": fields},
        "metadata": [{"breadcrumb": [], "metadata": root}],
    }
    keys = {"key_properties": ["id"]} | ({"bookmark_properties": ["page"]} if method == "INCREMENTAL" else {})
    messages = [
        {"type": "SCHEMA", "stream": "shops", "schema": stream["schema"], **keys},
        {"type": "RECORD", "stream": "shops", "record": {"id": 1, "page": 7}},
        {"type": "STATE", "value": {"bookmarks": {"shops": {"page": 7}}}},
        {"type": "STATE", "value": {"bookmarks": {}}},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in messages).encode()
    found = [one.code for one in check_messages(lines, catalog={"streams": [stream]}) if one.code == "B316"]
    assert found == codes
