"""What stands in a CSV file of a BATCH, and what can't."""

from __future__ import annotations

import json

import piped
import pytest
from piped import record, state

from burler.errors import BatchError, BurlerError, ConfigError

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "paid": {"type": ["null", "boolean"]},
        "price": {"type": ["null", "number"]},
        "tags": {"type": ["null", "array"]},
    }
}


def written(*rows, schema=SCHEMA, **options):
    """The text of a file with these rows, given as JSON."""
    return piped.written("csv", schema, *rows, options=options).decode()


def test_text_stands_in_quotes_and_all_else_is_bare():
    given = written(
        '{"id":1,"name":"Ann, \\"A\\"\\nZoë","paid":true,"price":1.10,"tags":["a",{"b":1.0}]}',
        '{"id":2,"name":"","paid":null,"price":-1E400}',
        '{"id":12345678901234567890123}',
        "{}",
    )
    assert given == (
        "id,name,paid,price,tags\n"
        '1,"Ann, ""A""\nZoë",true,1.10,"[""a"",{""b"":1.0}]"\n'
        '2,"",,-1E400,\n'
        "12345678901234567890123,,,,\n"
        ",,,,\n"
    )


def test_options_change_the_file():
    given = written(
        '{"id":1,"name":"it\'s","tags":[1]}',
        '{"name":"NULL"}',
        delimiter="|", quote_char="'", null="NULL", header=False, line_end="\r\n",
    )  # fmt: skip
    assert given == "1|'it''s'|NULL|NULL|'[1]'\r\nNULL|'NULL'|NULL|NULL|NULL\r\n"


def test_the_order_is_that_of_the_schema_and_of_no_row():
    assert written('{"name":"b","id":1}', '{"id":2,"name":"a"}') == 'id,name,paid,price,tags\n1,"b",,,\n2,"a",,,\n'


def test_names_that_need_quotes_have_them():
    schema = {"properties": {name: {"type": "integer"} for name in ("a,b", 'q"', "", " x", "plain", "line\nend")}}
    assert written('{"plain":1}', schema=schema) == '"a,b","q""",""," x",plain,"line\nend"\n,,,,1,\n'


def test_fields_that_may_be_text_or_scalars_hold_the_source_text():
    schema = {"properties": {"v": {"type": ["string", "number", "boolean"]}}}
    given = written('{"v":"a"}', '{"v":1.50}', '{"v":true}', '{"v":null}', schema=schema, header=False)
    assert given == '"a"\n"1.50"\n"true"\n\n'


def test_fields_of_any_type_hold_json():
    schema = {"properties": {"v": {}, "w": {"type": ["string", "object"]}}}
    given = written('{"v":"a","w":"b"}', '{"v":1.50,"w":{}}', schema=schema, header=False)
    assert given == '"""a""","""b"""\n"1.50","{}"\n'


def test_the_schema_says_what_a_column_holds():
    """Text is put in quotes, JSON as its source, and numbers, true and false stand bare."""
    cases = [
        ({"type": "string", "format": "date-time"}, '"2024-01-02T03:04:05Z"', '"2024-01-02T03:04:05Z"'),
        ({"enum": ["a", "b", None]}, '"a"', '"a"'),
        ({"const": 5}, "5", "5"),
        ({"enum": [True]}, "true", "true"),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "5", "5"),
        ({"type": ["null", "integer"], "anyOf": [{"minimum": 3}, {"maximum": 1}]}, "5", "5"),
        ({"allOf": [{"type": "boolean"}, {"description": "x"}]}, "true", "true"),
        ({"type": ["boolean", "integer"]}, "5", '"5"'),
        ({"type": "null"}, "5", '"5"'),
        ({"$ref": "#/definitions/x", "type": "string"}, '"a"', '"""a"""'),
        (True, '"a"', '"""a"""'),
    ]
    schema = {
        "properties": {f"f{number}": node for number, (node, _, _) in enumerate(cases)},
        "allOf": [{"properties": {"more": {"type": "integer"}}}],
    }
    row = "{" + ",".join(f'"f{number}":{value}' for number, (_, value, _) in enumerate(cases)) + ',"more":7}'
    assert written(row, schema=schema, header=False) == ",".join(cell for _, _, cell in cases) + ",7\n"


def test_fields_that_are_not_declared_are_left_out_and_counted(caplog):
    made = written('{"id":1,"more":2}', '{"id":2}', '{"more":null,"id":3,"x y":[]}')
    assert made == "id,name,paid,price,tags\n1,,,,\n2,,,,\n3,,,,\n"
    assert [message for message in caplog.messages if "'users'" in message] == [
        f"stream 'users': field '{name}' is not in the schema and has no column: left out of {rows}. "
        "Declare it in the tap, or take the format jsonl"
        for name, rows in (("more", "2 rows"), ("x y", "1 row"))
    ]


@pytest.mark.usefixtures("values_in_logs")
@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id":"5"}', "field 'id': '\"5\"' can't stand in its csv column: it is no integer"),
        ('{"id":1.5}', "field 'id': '1.5' can't stand in its csv column: it is no integer"),
        ('{"id":1e99999999999999999999}', "it is no integer"),
        ('{"price":"5"}', "field 'price': '\"5\"' can't stand in its csv column: it is no number"),
        ('{"id":true}', "field 'id': 'true'"),
        ('{"price":{"a":1}}', "field 'price': '{\"a\":1}'"),
        ('{"paid":"yes"}', "field 'paid': '\"yes\"' can't stand in its csv column: it is neither true nor false"),
        ('{"paid":1}', "field 'paid': '1'"),
        ('{"name":"a\\ud83d"}', "half of a surrogate pair"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_an_error_and_rows_before_it_are_in_the_file(row, said, tmp_path):
    schema = {"type": "SCHEMA", "stream": "users", "schema": SCHEMA, "key_properties": []}
    bad = f'{{"type":"RECORD","stream":"users","record":{row}}}'.encode()
    out = piped.packed(piped.config(tmp_path, "csv"), schema, record(1), state(1), bad, record(2), state(2))
    assert isinstance(out.error, BatchError) and str(out.error).startswith("lines 4 and after: stream 'users': ")
    assert said in str(out.error) and str(out.error).count("\n") <= 2
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b'id,name,paid,price,tags\n1,"n1",,,\n'
    assert out.of("STATE") == [state(1)]


def test_a_carriage_return_between_values_ends_no_row():
    assert written('{"id":1,\r"more":"\\ud83d"}', header=False) == "1,,,,\n"


def test_half_of_a_surrogate_pair_stays_within_json_text():
    assert (
        written('{"id":1,"name":"\\u00fc\\ud83d\\ude00","tags":["\\ud83d"]}', header=False)
        == '1,"ü😀",,,"[""\\ud83d""]"\n'
    )


def test_a_schema_without_fields_is_refused_with_the_cure():
    with pytest.raises(BurlerError, match=r"(?s)stream 'users': its schema declares no properties.*jsonl"):
        written('{"id":1}', schema={"type": "object"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": "||"}, "delimiter must be one letter"),
        ({"delimiter": ""}, "delimiter must be one letter"),
        ({"delimiter": "\n"}, "delimiter must be one letter"),
        ({"delimiter": "\x00"}, "delimiter must be one letter"),
        ({"delimiter": "§"}, "delimiter must be one letter of ASCII"),
        ({"delimiter": "e"}, "stands in numbers and in true and false"),
        ({"delimiter": "-"}, "stands in numbers"),
        ({"delimiter": '"'}, "delimiter and quote can't both be"),
        ({"delimiter": 5}, "delimiter must be"),
        ({"quote_char": ""}, "quote_char is needed"),
        ({"quote_char": "''"}, "quote_char must be one letter"),
        ({"null": "a,b"}, "must not hold ','"),
        ({"null": 'a"'}, "must not hold"),
        ({"null": "a\n"}, "must not hold"),
        ({"null": "0"}, "could be a value itself"),
        ({"null": "-1.5e3"}, "could be a value itself"),
        ({"null": "True"}, "could be a value itself"),
        ({"null": "\\."}, "could be a value itself"),
        ({"null": "\ufeffnone"}, "could be a value itself"),
        ({"null": 5}, "null must be text"),
        ({"header": "yes"}, "header must be true or false"),
        ({"line_end": "\r"}, "line_end must be"),
        ({"line_end": ";"}, "line_end must be"),
        ({"quotechar": "'"}, "quotechar is unknown. Known: delimiter, header, line_end, null, quote_char"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        written("{}", **options)


def test_a_row_of_two_thousand_columns():
    schema = {"properties": {f"c{number}": {"type": "integer"} for number in range(2000)}}
    row = json.dumps({f"c{number}": number for number in range(2000)})
    assert written(row, schema=schema, header=False) == ",".join(map(str, range(2000))) + "\n"
