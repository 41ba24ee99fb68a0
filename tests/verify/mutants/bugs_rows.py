"""Bugs of pages, requests, rows and the messages they go out in."""

from __future__ import annotations

from bugs import Bug

_PAGE = '            yield answer["items"]\n'
_RECORD = '        record = {field: value for field, value in row.items() if field in schema["properties"]}\n'
_NOW = '    extracted = datetime.now(UTC).isoformat().replace("+00:00", "Z")\n'
_VERSION = "    version = time.time_ns() // 1_000_000\n"
_ACTIVATE = '    write({"type": "ACTIVATE_VERSION", "stream": "products", "version": version})\n'
_PRODUCTS_SCHEMA = '    write_schema("products", chosen["products"])\n'
_PRODUCTS_PAGES = '    for rows in shop.pages("/products"):\n'


def _changed(*lines: str) -> tuple[tuple[str, str], ...]:
    """The record, changed by some lines."""
    return ((_RECORD, _RECORD + "".join(f"        {line}\n" for line in lines)),)


ROW_BUGS = (
    Bug(
        "first_page_left_out", "pages are counted from 2", (("        page = 1\n", "        page = 2\n"),), subtle=True
    ),
    Bug(
        "partial_page_dropped",
        "only full pages count: the last one is dropped",
        ((_PAGE, '            if len(answer["items"]) == PER_PAGE:\n    ' + _PAGE),),
        subtle=True,
    ),
    Bug(
        "third_page_skipped",
        "every third page is left out",
        ((_PAGE, "            if page % 3:\n    " + _PAGE),),
        subtle=True,
    ),
    Bug(
        "first_row_of_page_lost",
        "a row is cut off each page but the first, as if pages overlapped",
        ((_PAGE, '            yield answer["items"][page > 1 :]\n'),),
        subtle=True,
    ),
    Bug(
        "pages_overlap",
        "each page begins with the last row of the one before",
        (
            ("        page = 1\n", "        page, last = 1, []\n"),
            (_PAGE, '            yield last + answer["items"]\n            last = answer["items"][-1:]\n'),
        ),
        subtle=True,
    ),
    Bug(
        "number_as_text",
        "an amount is text",
        _changed('if "total" in record:', '    record["total"] = str(record["total"])'),
    ),
    Bug(
        "integer_as_float",
        "whole numbers go out as 3.0",
        _changed('if "quantity" in record:', '    record["quantity"] = float(record["quantity"])'),
    ),
    Bug(
        "time_without_zone",
        "the zone of a time is cut off",
        _changed('if "updated_at" in record:', '    record["updated_at"] = record["updated_at"].removesuffix("Z")'),
    ),
    Bug(
        "null_where_none_may_be",
        "false becomes null",
        _changed('if "is_gift" in record:', '    record["is_gift"] = record["is_gift"] or None'),
    ),
    Bug(
        "object_as_text",
        "an object goes out as JSON in a text",
        _changed('if "customer" in record:', '    record["customer"] = json.dumps(record["customer"])'),
    ),
    Bug(
        "renamed_field",
        "a field has another name than in the schema",
        _changed('if "total" in record:', '    record["total_amount"] = record.pop("total")'),
    ),
    Bug(
        "field_not_in_schema",
        "rows have a field that the schema does not",
        (
            ('            tags={"type": ["array"], "items": TEXT},\n', ""),
            (
                _RECORD,
                '        left_out = STREAMS[name]["schema"]["properties"].keys() - schema["properties"].keys()\n'
                "        record = {field: value for field, value in row.items() if field not in left_out}\n",
            ),
        ),
    ),
    Bug(
        "nested_field_not_in_schema",
        "an object inside has a field that its schema does not",
        (("city=TEXT, zip=TEXT)", "city=TEXT)"),),
    ),
    Bug(
        "key_misspelt",
        "SCHEMA names a key that no row has",
        (
            (
                '"schema": schema, "key_properties": stream["keys"]}',
                '"schema": schema, "key_properties": [key.replace("e_no", "e_number") for key in stream["keys"]]}',
            ),
        ),
    ),
    Bug(
        "key_null",
        "a key may be null, and is",
        (
            ("order_id=INTEGER, line_no=INTEGER,", 'order_id=INTEGER, line_no={"type": ["null", "integer"]},'),
            *_changed('if record.get("line_no") == 1:', '    record["line_no"] = None'),
        ),
    ),
    Bug(
        "record_before_schema",
        "SCHEMA comes behind its rows",
        ((_PRODUCTS_SCHEMA, ""), (_ACTIVATE, _PRODUCTS_SCHEMA + _ACTIVATE)),
    ),
    Bug(
        "schema_per_record",
        "SCHEMA is written again for each row",
        ((_RECORD, "        write_schema(name, schema)\n" + _RECORD),),
    ),
    Bug("no_activation", "ACTIVATE_VERSION never comes", ((_ACTIVATE, ""),)),
    Bug(
        "activation_first",
        "ACTIVATE_VERSION comes before the rows, at every run",
        ((_ACTIVATE, ""), (_PRODUCTS_PAGES, _ACTIVATE + _PRODUCTS_PAGES)),
    ),
    Bug(
        "version_per_page",
        "each page has a version of its own: the last one alone is activated",
        ((_VERSION, ""), (_PRODUCTS_PAGES, _PRODUCTS_PAGES + "    " + _VERSION)),
    ),
    Bug(
        "time_extracted_naive", "time_extracted has no zone", ((_NOW, "    extracted = datetime.now().isoformat()\n"),)
    ),
    Bug(
        "time_extracted_ahead",
        "time_extracted is local time with a Z: two hours ahead",
        (
            ("from datetime import UTC, datetime\n", "from datetime import UTC, datetime, timedelta, timezone\n"),
            (_NOW, '    extracted = datetime.now(timezone(timedelta(hours=2))).strftime("%Y-%m-%dT%H:%M:%SZ")\n'),
        ),
    ),
    Bug(
        "token_in_record",
        "links to images carry the token",
        (
            (
                '        write_rows("products", chosen["products"], rows, version=version)\n',
                '        token = shop.session.headers["Authorization"].partition(" ")[2]\n'
                '        rows = [{**row, "image_url": f"{row[\'image_url\']}?token={token}"} for row in rows]\n'
                '        write_rows("products", chosen["products"], rows, version=version)\n',
            ),
        ),
    ),
)
