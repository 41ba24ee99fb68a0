"""singer-python's side: its Transformer and write_record in a loop, as taps that use it do.

Run as: tap_singer.py VARIANT WORK ROWS (VARIANT is not looked at).
"""

from __future__ import annotations

import copy
import sys

import clock
import singer
import standard
from singer import metadata

WORK, COUNT = sys.argv[2], int(sys.argv[3])


def main() -> None:
    """SCHEMA, the rows, STATE."""
    schema = copy.deepcopy(standard.SCHEMA)
    key = ["ts"] if WORK == "keyed" else []
    about = metadata.to_map(
        metadata.get_standard_metadata(schema, key_properties=["id"], valid_replication_keys=key or None)
    )
    for path in about:
        about[path]["selected"] = True
    singer.write_schema(standard.STREAM, schema, ["id"], key or None)
    moment = singer.utils.now()
    with singer.Transformer() as transformer:
        for number, row in enumerate(standard.rows(COUNT), 1):
            record = transformer.transform(row, schema, about)
            singer.write_record(standard.STREAM, record, time_extracted=moment)
            if key and number % 1_000 == 0:
                singer.write_state({"bookmarks": {standard.STREAM: {"ts": record["ts"]}}})
    singer.write_state({"bookmarks": {standard.STREAM: {"ts": record["ts"]} if key else {}}})


if __name__ == "__main__":
    with clock.measured("singer-python"):
        main()
