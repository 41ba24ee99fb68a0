"""What stands in a CSV file of a BATCH, and what can't."""

from __future__ import annotations

import io

import msgspec
import pytest

from burler.errors import BatchError, ConfigError
from support.internals import batch_config, csv_write, encoders, packing

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "paid": {"type": ["null", "boolean"]},
        "price": {"type": ["null", "number"]},
        "tags": {"type": ["null", "array"]},
    }
}


def layout(schema=SCHEMA, **options):
    return encoders.layout_of(batch_config.Encoding("csv", None, options), schema, "orders")


def written(*rows, schema=SCHEMA, compression=None, **options):
    """The text of a file with these rows, given as lines of JSON."""
    encoding = batch_config.Encoding("csv", compression, options)
    pieces = []
    encoder = encoders.open_encoder(encoding, encoders.layout_of(encoding, schema, "orders"), pieces.append)
    encoder.rows(b"".join(row.encode() + b"\n" for row in rows), len(rows))
    encoder.finish()
    return packing.unpacked(io.BytesIO(b"".join(pieces)), compression).read().decode()


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


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"type": "string", "format": "date-time"}, "text"),
        ({"enum": ["a", "b", None]}, "text"),
        ({"const": 5}, "number"),
        ({"enum": [True]}, "boolean"),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "number"),
        ({"type": ["null", "integer"], "anyOf": [{"minimum": 3}, {"maximum": 1}]}, "number"),
        ({"allOf": [{"type": "boolean"}, {"description": "x"}]}, "boolean"),
        ({"type": ["boolean", "integer"]}, "json"),
        ({"type": "null"}, "json"),
        ({"$ref": "#/definitions/x", "type": "string"}, "json"),
        (True, "json"),
    ],
)
def test_the_schema_says_what_a_column_holds(node, kind):
    assert layout({"properties": {"x": node}}).columns[0].kind == kind


def test_fields_in_allof_are_columns():
    schema = {"properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"b": {"type": "integer"}}}]}
    assert [column.name for column in layout(schema).columns] == ["a", "b"]


def test_fields_that_are_not_declared_are_left_out_and_counted():
    encoding = batch_config.Encoding("csv")
    plan = layout()
    pieces = []
    encoder = encoders.open_encoder(encoding, plan, pieces.append)
    encoder.rows(b'{"id":1,"more":2}\n{"id":2}\n{"more":null,"id":3,"x y":[]}\n', 3)
    encoder.finish()
    assert b"".join(pieces) == b"id,name,paid,price,tags\n1,,,,\n2,,,,\n3,,,,\n"
    assert plan.remarks() == [
        "field 'more' is not in the schema and has no column: left out of 2 rows. "
        "Declare it in the tap, or take the format jsonl",
        "field 'x y' is not in the schema and has no column: left out of 1 row. "
        "Declare it in the tap, or take the format jsonl",
    ]
    assert plan.remarks() == []


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
        ('{"name":', "a row can't be read"),
        ("[1]", "a row can't be read"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_an_error_and_the_file_goes_on(row, said):
    pieces = []
    encoder = encoders.open_encoder(batch_config.Encoding("csv"), layout(), pieces.append)
    encoder.rows(b'{"id":1}\n', 1)
    good = b'{"id":2,"name":"good","more":1}\n' * 5000
    with pytest.raises(BatchError, match="stream 'orders': ") as caught:
        encoder.rows(good + row.encode() + b"\n" + good, 10_001)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") <= 2
    encoder.rows(b'{"id":3}\n', 1)
    encoder.finish()
    assert b"".join(pieces) == b"id,name,paid,price,tags\n1,,,,\n3,,,,\n"
    assert encoder._layout.remarks() == []
    assert encoder.size_bytes == 18


def test_a_carriage_return_between_values_ends_no_row():
    assert written('{"id":1,\r"more":"\\ud83d"}', header=False) == "1,,,,\n"


def test_half_of_a_surrogate_pair_stays_within_json_text():
    assert (
        written('{"id":1,"name":"\\u00fc\\ud83d\\ude00","tags":["\\ud83d"]}', header=False)
        == '1,"ü😀",,,"[""\\ud83d""]"\n'
    )


def test_the_buffer_of_rows_is_free_afterwards():
    buffer = bytearray(b'{"id":1,"name":"a"}\n')
    pieces = []
    encoder = encoders.open_encoder(batch_config.Encoding("csv"), layout(), pieces.append)
    encoder.rows(memoryview(buffer), 1)
    buffer.clear()  # raises BufferError while somebody holds it
    buffer += b'{"id":"x"}\n'
    with pytest.raises(BatchError) as caught:
        encoder.rows(buffer, 1)
    buffer.clear()
    encoder.finish()
    assert b"".join(pieces) == b'id,name,paid,price,tags\n1,"a",,,\n'
    assert caught.value


def test_other_counts_than_rows_are_an_error():
    encoder = encoders.open_encoder(batch_config.Encoding("csv"), layout(), lambda data: None)
    with pytest.raises(BatchError, match="1 rows came where 2 were announced"):
        encoder.rows(b'{"id":1}\n', 2)


def test_a_file_without_rows_has_its_header():
    pieces = []
    encoders.open_encoder(batch_config.Encoding("csv"), layout(), pieces.append).finish()
    assert b"".join(pieces) == b"id,name,paid,price,tags\n"


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_files_are_packed_as_a_whole(compression):
    assert written('{"id":1}', compression=compression) == "id,name,paid,price,tags\n1,,,,\n"


def test_a_schema_without_fields_is_refused_with_the_cure():
    with pytest.raises(BatchError, match=r"(?s)stream 'orders': its schema declares no properties.*jsonl"):
        layout({"type": "object"})


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
        ({"delimiter": '"'}, "delimiter and quote_char can't both be"),
        ({"delimiter": 5}, "delimiter must be one letter"),
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
        ({"quotechar": "'"}, r"'quotechar' is unknown. Known: delimiter, quote_char"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        layout(**options)


def test_a_row_of_two_thousand_columns():
    schema = {"properties": {f"c{number}": {"type": "integer"} for number in range(2000)}}
    row = msgspec.json.encode({f"c{number}": number for number in range(2000)}).decode()
    assert written(row, schema=schema, header=False) == ",".join(map(str, range(2000))) + "\n"


def test_csv_takes_no_columns():
    encoder = csv_write.open_file(batch_config.Encoding("csv"), layout(), lambda data: None)
    with pytest.raises(NotImplementedError):
        encoder.table(None)
