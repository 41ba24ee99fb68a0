"""tap-shop: products, orders and their lines from the shop's API. The Singer protocol written by hand.

python shop_tap.py --config config.json --discover > catalog.json
python shop_tap.py --config config.json --catalog catalog.json --state state.json
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

LOG = logging.getLogger("tap-shop")
REQUIRED = ("base_url", "api_token", "start_date")
SECRETS = ("api_token",)
PER_PAGE = 7
TRIES = 3
STOP: list[int] = []  # the signals that have come

INTEGER, NUMBER, TEXT, BOOLEAN = ({"type": [kind]} for kind in ("integer", "number", "string", "boolean"))
MOMENT, DAY = {"type": ["string"], "format": "date-time"}, {"type": ["string"], "format": "date"}
TEXT_OR_NULL, NUMBER_OR_NULL = {"type": ["null", "string"]}, {"type": ["null", "number"]}


def record_of(*nullable: str, **fields: dict) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": [*nullable, "object"], "properties": fields}


STREAMS: dict[str, dict[str, Any]] = {
    "products": {
        "keys": ["id"],
        "method": "FULL_TABLE",
        "replication_key": None,
        "schema": record_of(
            id=INTEGER, sku=TEXT, title=TEXT, price=TEXT, weight_kg=NUMBER_OR_NULL, in_stock=BOOLEAN,
            image_url=TEXT, category=record_of(id=INTEGER, name=TEXT),
        ),
    },
    "orders": {
        "keys": ["id"],
        "method": "INCREMENTAL",
        "replication_key": "updated_at",
        "schema": record_of(
            id=INTEGER, number=TEXT, status=TEXT, placed_on=DAY, updated_at=MOMENT, total=NUMBER,
            item_count=INTEGER, is_gift=BOOLEAN, note=TEXT_OR_NULL,
            customer=record_of(id=INTEGER, name=TEXT, email=TEXT_OR_NULL),
            address=record_of("null", street=TEXT, city=TEXT, zip=TEXT),
            tags={"type": ["array"], "items": TEXT},
        ),
    },
    "order_lines": {
        "keys": ["order_id", "line_no"],
        "method": "INCREMENTAL",
        "replication_key": "order_updated_at",
        "schema": record_of(
            order_id=INTEGER, line_no=INTEGER, order_updated_at=MOMENT, product_id=INTEGER, quantity=INTEGER,
            unit_price=NUMBER, discount=NUMBER_OR_NULL,
        ),
    },
}  # fmt: skip


class TapError(Exception):
    """What went wrong, for the user."""


def discover() -> dict[str, Any]:
    """The catalog: what there is, and what is taken when nobody chooses."""
    return {"streams": [entry(name) for name in STREAMS]}


def entry(name: str) -> dict[str, Any]:
    """A stream of the catalog."""
    stream = STREAMS[name]
    replication_key = stream["replication_key"]
    own = {"inclusion": "available", "selected-by-default": True, "table-key-properties": stream["keys"],
           "forced-replication-method": stream["method"]}  # fmt: skip
    if replication_key:
        own["valid-replication-keys"] = [replication_key]
    metadata = [{"breadcrumb": [], "metadata": own}]
    for field in stream["schema"]["properties"]:
        fixed = field in stream["keys"] or field == replication_key
        inclusion = "automatic" if fixed else "available"
        about = {"inclusion": inclusion, "selected-by-default": True}
        metadata.append({"breadcrumb": ["properties", field], "metadata": about})
    found = {"tap_stream_id": name, "stream": name, "schema": stream["schema"], "key_properties": stream["keys"],
             "replication_method": stream["method"], "metadata": metadata}  # fmt: skip
    return found if replication_key is None else {**found, "replication_key": replication_key}


def is_chosen(about: dict[str, Any], legacy: Any, otherwise: bool) -> bool:
    """Whether the metadata of a stream or field select it. Older catalogs have their mark (`legacy`) in the schema."""
    if about.get("inclusion") in ("automatic", "unsupported"):
        return about["inclusion"] == "automatic"
    said = (about.get("selected"), legacy, about.get("selected-by-default"), otherwise)
    return bool(next(value for value in said if value is not None))


def chosen_schemas(catalog: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The schema of each selected stream, with the selected fields alone."""
    if not isinstance(catalog.get("streams"), list):
        raise TapError("the catalog has no list 'streams'")
    chosen = {}
    for stream in catalog["streams"]:
        name, schema = stream["tap_stream_id"], stream["schema"]
        if name not in STREAMS:
            raise TapError(f"the catalog has a stream {name!r}; there are {', '.join(STREAMS)}")
        about = {tuple(item["breadcrumb"]): item["metadata"] for item in stream.get("metadata", [])}
        if not is_chosen(about.get((), {}), stream.get("selected"), False):
            continue
        fields = {
            field: of_field
            for field, of_field in schema["properties"].items()
            if is_chosen(about.get(("properties", field), {}), of_field.get("selected"), True)
        }
        chosen[name] = {**schema, "properties": fields}
    return chosen


class Shop:
    """The shop's API."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.base_url = config["base_url"].rstrip("/")
        self.timeout = float(config.get("request_timeout", 20))
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {config['api_token']}"

    def get(self, path: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer of one endpoint. Waits and tries again where that can help."""
        for left in reversed(range(TRIES)):
            try:
                answer = self.session.get(self.base_url + path, params=params, timeout=self.timeout)
                if answer.ok:
                    return answer.json()
            except requests.RequestException as error:
                problem = f"no answer that can be read ({type(error).__name__})"
            else:
                problem = f"HTTP {answer.status_code}"
                if answer.status_code < 500 and answer.status_code != 429:
                    break
            if left:
                time.sleep(0.5)
        raise TapError(f"GET {self.base_url}{path}: {problem}")

    def pages(self, path: str, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """The pages of a list."""
        page = 1
        while page:
            answer = self.get(path, {**params, "page": page, "per_page": PER_PAGE})
            yield answer["items"]
            page = answer["next_page"]


def write(message: dict[str, Any]) -> None:
    """One line on stdout."""
    sys.stdout.write(json.dumps(message) + "\n")


def write_schema(name: str, schema: dict[str, Any]) -> None:
    """What the rows behind it look like."""
    stream = STREAMS[name]
    message = {"type": "SCHEMA", "stream": name, "schema": schema, "key_properties": stream["keys"]}
    if stream["replication_key"]:
        message["bookmark_properties"] = [stream["replication_key"]]
    write(message)


def write_rows(name: str, schema: dict[str, Any], rows: list[dict[str, Any]], **more: Any) -> None:
    """Rows, with their selected fields."""
    extracted = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    for row in rows:
        record = {field: value for field, value in row.items() if field in schema["properties"]}
        write({"type": "RECORD", "stream": name, "record": record, "time_extracted": extracted, **more})


def write_state(state: dict[str, Any]) -> None:
    """All that was written is safe up to here."""
    write({"type": "STATE", "value": state})
    sys.stdout.flush()


def moment(text: str) -> datetime:
    """A time, for comparing: equal ones can be written in several ways."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise TapError(f"{text!r} is no time") from None
    if found.tzinfo is None:
        raise TapError(f"{text!r} has no zone; write it like 2024-01-31T00:00:00Z")
    return found


def bookmark(state: dict[str, Any], name: str, start: str) -> str:
    """From when on a stream is read. Rows of that very time come again: there may be new ones of it."""
    return state["bookmarks"].get(name, {}).get(STREAMS[name]["replication_key"]) or start


def sync_products(shop: Shop, chosen: dict[str, dict[str, Any]], state: dict[str, Any]) -> None:
    """All products, as a new version of the table. It counts once all of its rows are out."""
    version = time.time_ns() // 1_000_000
    write_schema("products", chosen["products"])
    for rows in shop.pages("/products"):
        write_rows("products", chosen["products"], rows, version=version)
        write_state(state)
        if STOP:
            return
    write({"type": "ACTIVATE_VERSION", "stream": "products", "version": version})


def lines_of(shop: Shop, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of a page of orders, in the order of these, with the time that orders go by."""
    numbers = ",".join(str(order["id"]) for order in orders)
    answer = shop.get("/order_lines", {"order_ids": numbers})
    updated = {order["id"]: order["updated_at"] for order in orders}
    place = {number: at for at, number in enumerate(updated)}
    rows = [{**line, "order_updated_at": updated[line["order_id"]]} for line in answer["items"]]
    return sorted(rows, key=lambda line: (place[line["order_id"]], line["line_no"]))


def sync_orders(shop: Shop, chosen: dict[str, dict[str, Any]], state: dict[str, Any], start: str) -> None:
    """Orders and their lines: one walk through the orders serves both. Orders come sorted by time of change."""
    names = [name for name in ("orders", "order_lines") if name in chosen]
    since = {name: bookmark(state, name, start) for name in names}
    for name in names:
        write_schema(name, chosen[name])
    for orders in shop.pages("/orders", updated_since=min(since.values(), key=moment), sort="updated_at"):
        for name in names:
            due = [order for order in orders if moment(order["updated_at"]) >= moment(since[name])]
            if not due:
                continue
            rows = due if name == "orders" else lines_of(shop, due)
            write_rows(name, chosen[name], rows)
            latest = max(since[name], due[-1]["updated_at"], key=moment)
            state["bookmarks"][name] = {STREAMS[name]["replication_key"]: latest}
        write_state(state)
        if STOP:
            return


def sync(config: dict[str, Any], catalog: dict[str, Any], state: dict[str, Any]) -> None:
    """All selected streams. One that was interrupted goes first."""
    chosen = chosen_schemas(catalog)
    state = {**state, "bookmarks": dict(state.get("bookmarks") or {})}
    shop = Shop(config)
    parts = [part for part in (("products",), ("orders", "order_lines")) if any(name in chosen for name in part)]
    parts.sort(key=lambda part: state.get("currently_syncing") not in part)
    for part in parts:
        LOG.info("reading %s", ", ".join(name for name in part if name in chosen))
        state["currently_syncing"] = next(name for name in part if name in chosen)
        if part == ("products",):
            sync_products(shop, chosen, state)
        else:
            sync_orders(shop, chosen, state, config["start_date"])
        if STOP:
            LOG.warning("told to stop: the next run goes on from the last STATE")
            return
    state.pop("currently_syncing", None)
    write_state(state)


def read_json(path: str, what: str) -> dict[str, Any]:
    """An object in a file."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TapError(f"{what} {path}: {error}") from None
    if not isinstance(content, dict):
        raise TapError(f"{what} {path}: it holds {type(content).__name__}, not an object")
    return content


def read_config(path: str) -> dict[str, Any]:
    """The config, once it is known to be whole."""
    config = read_json(path, "config")
    missing = [key for key in REQUIRED if not config.get(key)]
    if missing:
        raise TapError(f"config {path}: {', '.join(missing)} must be given")
    moment(config["start_date"])
    shown = {key: "***" if key in SECRETS else value for key, value in config.items()}
    LOG.info("config: %s", shown)
    return config


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="tap-shop", description="Products, orders and order lines of a shop.")
    parser.add_argument("--config", "-c", required=True, help="JSON: " + ", ".join(REQUIRED))
    parser.add_argument("--discover", "-d", action="store_true", help="print the catalog")
    parser.add_argument("--catalog", help="the catalog with what is selected")
    parser.add_argument("--properties", "-p", help="the same, as older runners call it")
    parser.add_argument("--state", "-s", help="the last STATE of the run before")
    return parser.parse_args()


def run(flags: argparse.Namespace) -> None:
    """Discover or sync."""
    config = read_config(flags.config)
    if flags.discover:
        json.dump(discover(), sys.stdout, indent=2)
        return
    given = flags.catalog or flags.properties
    catalog = read_json(given, "catalog") if given else discover()
    sync(config, catalog, read_json(flags.state, "state") if flags.state else {})


def main() -> int:
    """Exit code: 0 all is out, or a signal came and STATE says where; 1 it has failed; 4 the reader has gone."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, lambda number, _frame: STOP.append(number))
    signal.signal(signal.SIGINT, lambda number, _frame: STOP.append(number))
    flags = arguments()
    try:
        try:
            run(flags)
        finally:
            sys.stdout.flush()
    except TapError as error:
        LOG.critical("%s", error)
        return 1
    except OSError as error:  # of stdout: all others are told as a TapError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at the end
        LOG.critical("cannot write to stdout: %s", error.strerror)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
