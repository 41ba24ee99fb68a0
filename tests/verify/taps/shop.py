"""A small tap in plain Python that keeps the rules of behaviour, and breaks one of them for each --bug NAME.

    python -S -E shop.py --config config.json [--bug NAME]... [--discover] [--catalog F] [--properties F] [--state F]

Streams: people (INCREMENTAL, rows in the order of id), orders (FULL_TABLE, with a version). 150 rows each, which is
some 30 kB: enough for a pipe to be full in the middle.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

HELP = "tap-shop [--config FILE] [--discover] [--catalog FILE] [--properties FILE] [--state FILE]\n"
ROWS = 150
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "pad": {"type": "string"}},
}


class Stopped(Exception):
    """SIGTERM came."""


def options(words):
    found, flags = {}, set()
    i = 0
    while i < len(words):
        if words[i] in ("--discover", "--help"):
            flags.add(words[i][2:])
            i += 1
        else:
            found.setdefault(words[i][2:], []).append(words[i + 1])
            i += 2
    return found, flags


given, flags = options(sys.argv[1:])
BUGS = set(given.pop("bug", ()))
ROWS = 5 if "tiny" in BUGS else ROWS
stopping = False
without_pad = set()


def has(bug):
    return bug in BUGS


def load(name):
    return json.load(open(given[name][0])) if name in given else None


def log(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def write(message):
    line = json.dumps(message) + "\n"
    if has("buffered"):
        sys.stdout.write(line)
        return
    try:
        sys.stdout.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        if has("epipe-traceback"):
            raise
        if has("swallows-epipe"):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        elif has("hangs-at-epipe"):
            time.sleep(3600)
        else:
            log("CRITICAL the reader of stdout has gone")
            os._exit(1)


def at_sigterm(number, frame):
    global stopping
    if has("dies-in-handler"):
        os._exit(0)
    if has("raises-in-handler"):
        raise RuntimeError("terminated")
    if not has("goes-on"):
        stopping = True


def check_stop():
    if stopping:
        raise Stopped


def set_signals():
    if has("ignores-sigterm") or has("hangs-after-sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif not has("default-sigterm") and not has("buffered-default"):
        signal.signal(signal.SIGTERM, at_sigterm)


def catalog():
    metadata = [
        {"breadcrumb": [], "metadata": {"inclusion": "available"}},
        {"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}},
        {"breadcrumb": ["properties", "pad"], "metadata": {"inclusion": "available"}},
    ]
    if has("unstable"):
        metadata[0]["metadata"]["seen-at"] = random.random()
    entry = {"schema": SCHEMA, "key_properties": ["id"], "metadata": metadata}
    names = ["people", "orders"]
    if has("shuffled"):
        random.shuffle(names)
    return {"streams": [{"tap_stream_id": name, "stream": name, **entry} for name in names]}


def discover():
    if has("discovery-fails"):
        log("CRITICAL no such host")
        sys.exit(1)
    if has("discovery-no-json"):
        print("people\norders")
        return
    if has("noise"):
        print("INFO {connecting}")
    json.dump(catalog(), sys.stdout)
    if has("noise-after"):
        print("\ndone")


def is_selected(item):
    if has("ignores-selection"):
        return True
    for one in item.get("metadata", ()):
        if one["breadcrumb"] == [] and "selected" in one["metadata"]:
            return one["metadata"]["selected"]
    return item["schema"].get("selected", False)


def row(name, i):
    if name in without_pad and not has("sends-all-fields"):
        return {"id": i}
    return {"id": i, "pad": "x" * 150 + str(i)}


def pad_is_selected(item):
    found = [one["metadata"].get("selected", True) for one in item["metadata"] if one["breadcrumb"][1:] == ["pad"]]
    return all(found)


def people(state):
    bookmark = state["bookmarks"].get("people", {}).get("id", 0)
    if has("schema-late") and bookmark >= ROWS:
        return
    if not has("rows-without-schema") or bookmark < ROWS:
        schema()
    if has("fails-on-nothing"):
        rows = range(bookmark + 1, ROWS + 1)
        max(rows)
    for i in range(max(bookmark, 1), ROWS + 1):
        try:
            check_stop()
        except Stopped:
            if has("early-bookmark"):
                state["bookmarks"]["people"] = {"id": ROWS}
            raise
        write({"type": "RECORD", "stream": "people", "record": row("people", i)})
        if has("hangs-after-sigterm") and i == 20:
            time.sleep(3600)
        state["bookmarks"]["people"] = {"id": i}
        if i % 10 == 0:
            write({"type": "STATE", "value": state})


def schema(name="people"):
    write({"type": "SCHEMA", "stream": name, "schema": SCHEMA, "key_properties": ["id"]})


def orders(state):
    version = int(time.time() * 1000)
    schema("orders")
    try:
        for i in range(1, ROWS + 1):
            check_stop()
            write({"type": "RECORD", "stream": "orders", "record": row("orders", i), "version": version})
    finally:
        if has("activates-half") or not stopping:
            write({"type": "ACTIVATE_VERSION", "stream": "orders", "version": version})


STREAMS = {"people": people, "orders": orders}


def sync(config):
    chosen = load("catalog")
    if "properties" in given:
        if has("refuses-both") and chosen:
            sys.exit("CRITICAL --catalog and --properties exclude each other")
        if has("fails-on-properties") and not chosen:
            raise KeyError("metadata")
        if has("ignores-properties") and not chosen:
            return
        chosen = chosen or load("properties")
    state = load("state") or {}
    if has("refuses-state") and "state" in given:
        state["bookmarks"]["people"]
    if has("refuses-gone") and state.get("currently_syncing") not in (None, *STREAMS):
        sys.exit("CRITICAL the state names a stream that is not known")
    known = state.get("bookmarks", {})
    if has("fails-just-now") and known.get("people", {}).get("at", "") > "2024":
        sys.exit("CRITICAL no page")
    names = [item["tap_stream_id"] for item in chosen["streams"] if is_selected(item)]
    without_pad.update(item["tap_stream_id"] for item in chosen["streams"] if not pad_is_selected(item))
    if has("fails-with-fewer-fields") and without_pad:
        raise KeyError("pad")
    if has("only-full-table"):
        names = ["orders"]
    if has("drops-bookmarks"):
        known = {name: held for name, held in known.items() if name in names}
    state = {"bookmarks": dict(known)}
    if has("fails-on-no-selection") and not names:
        sys.exit("CRITICAL no stream is selected")
    try:
        for name in names:
            STREAMS[name](state)
    except Stopped:
        if has("exit-code-3"):
            log("CRITICAL terminated")
            sys.exit(3)
        if has("half-done"):
            sys.exit(0)
        log("WARNING stopped")
    if has("loses-bookmarks"):
        state["bookmarks"].pop("people", None)
    write({"type": "STATE", "value": state})


def main():
    if "help" in flags:
        unknown = {"catalog-only": "properties", "properties-only": "catalog", "no-discovery": "discover"}
        left_out = [flag for bug, flag in unknown.items() if has(bug)]
        sys.stdout.write("".join(part for part in HELP.split("[") if not part[2:].startswith(tuple(left_out))))
        return
    set_signals()
    config = load("config")
    if has("needs-no-config"):
        config = {"token": "12345678"}
    if has("traceback-always"):
        raise KeyError("base_url")
    if has("traceback"):
        config["token"]
    if has("writes-before-config"):
        schema("people")
    if has("hangs-without-config") and config is None:
        time.sleep(3600)
    if not config or "token" not in config:
        if not has("silent-without-config"):
            log("CRITICAL config: token is missing. Put it into the file of --config.")
        sys.exit(0 if has("exits-zero") else 1)
    if has("tells-secret"):
        log(f"INFO config: {config}")
    if has("leaves-child"):
        sleeper = ["sleep", "600"]
        subprocess.Popen(sleeper, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if has("child-keeps-pipes"):
        subprocess.Popen(["sleep", "600"])
    if has("talks"):
        for _ in range(20_000):
            log("DEBUG " + "y" * 100)
    discover() if "discover" in flags else sync(config)


main()
