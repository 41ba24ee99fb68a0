"""An old tap on singer-python: the CSV exports of a shop. It keeps its own ``main`` and loop.

Of burler it uses two packages as plain functions: ``burler.config`` says everything that is wrong with a config at
once, and ``burler.singer`` reads catalogs of any tool and prunes the SCHEMA to what is selected.
"""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

import singer
from singer import metadata, metrics, utils

from burler.config import check_config
from burler.errors import BurlerError
from burler.singer import catalog_from_wire, prune, standard_metadata, stream_selected

LOGGER = singer.get_logger()

CONFIG = {"folder": "exports", "start_date": "2024-01-01T00:00:00Z", "delimiter": None}
STREAMS: dict[str, dict[str, Any]] = {
    "orders": {"files": "orders-*.csv", "keys": ["order_id"], "method": "INCREMENTAL", "replication_key": "updated_at"},
    "customers": {"files": "customers.csv", "keys": ["customer_id"], "method": "FULL_TABLE", "replication_key": None},
}


def load_schema(name):
    path = Path(__file__).parent / "schemas" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def discover():
    streams = []
    for name, about in STREAMS.items():
        schema = load_schema(name)
        compiled = standard_metadata(
            schema,
            key_properties=about["keys"],
            replication_method=about["method"],
            replication_key=about["replication_key"],
        )
        streams.append(
            {
                "tap_stream_id": name,
                "stream": name,
                "key_properties": about["keys"],
                "schema": schema,
                "metadata": metadata.to_list(compiled),
            }
        )
    return {"streams": streams}


def rows_of(path, delimiter):
    """The rows of a file; ``ship_to.city`` becomes a field of the object ``ship_to``, an empty text null."""
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file, delimiter=delimiter):
            row: dict[str, Any] = {}
            for column, value in line.items():
                outer, _, inner = column.partition(".")
                if inner:
                    row.setdefault(outer, {})[inner] = value or None
                else:
                    row[outer] = value or None
            yield row


def sync_stream(name, entry, config, state):
    about = STREAMS[name]
    key = about["replication_key"]
    for field in filter(None, [*about["keys"], key]):  # a catalog may have lost it
        metadata.write(entry.metadata, ("properties", field), "inclusion", "automatic")
    schema = prune(entry.schema, entry.metadata, stream=name)
    singer.write_schema(name, schema, about["keys"], bookmark_properties=[key] if key else [])

    start = singer.get_bookmark(state, name, key, config["start_date"]) if key else ""
    latest = start
    with metrics.record_counter(name) as counter, singer.Transformer() as transformer:
        for path in sorted(Path(config["folder"]).glob(about["files"])):
            for row in rows_of(path, config.get("delimiter") or ","):
                record: Any = transformer.transform(row, schema, entry.metadata)
                if key:
                    if utils.strptime_to_utc(record[key]) < utils.strptime_to_utc(start):
                        continue
                    latest = max(latest, record[key], key=utils.strptime_to_utc)
                singer.write_record(name, record, time_extracted=utils.now())
                counter.increment()
    if key:
        state = singer.write_bookmark(state, name, key, latest)
    singer.write_state(state)
    return state


def sync(config, state, catalog):
    for name, entry in catalog.entries.items():
        if name in STREAMS and stream_selected(entry.metadata, stream=name):
            LOGGER.info("syncing %s", name)
            state = sync_stream(name, entry, config, state)


def run():
    args = utils.parse_args([])
    check_config(CONFIG, args.config, tap_name="tap-shop-exports")
    if args.discover:
        json.dump(discover(), sys.stdout, indent=2)
        return
    given = args.properties
    if args.catalog:  # the file itself: singer-python's object drops schema keywords that it does not know
        given = json.loads(Path(args.catalog_path).read_text(encoding="utf-8"))
    if not given:
        given = discover()
        for stream in given["streams"]:
            stream["metadata"].append({"breadcrumb": [], "metadata": {"selected": True}})
    sync(args.config, args.state or {}, catalog_from_wire(given))


def main():
    try:
        run()
    except BurlerError as error:
        LOGGER.critical("%s", error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
