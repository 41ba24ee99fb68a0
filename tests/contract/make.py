"""Makes the contract files: what one commit wrote and said, for later ones to be held against.

It is run in an environment of that commit, from any folder, and writes beside itself::

    git clone . ../c550d9f && cd ../c550d9f && git checkout c550d9f
    python3.11 -m venv .venv && .venv/bin/pip install -e '.[lake,spark,java,test]'
    .venv/bin/python HERE/tests/contract/make.py [states] [lakes] [tables] [offsets] [batch] [interface]

Without words it makes all of them; tables and offsets are made of the lakes, so these three belong together.

States and the interface come out the same each time: their runs are given a clock. The others do not, byte for byte:
each function says why. Iceberg's metadata names its files by absolute paths: its tables are made in a folder below
``/tmp`` that ``tables.py`` names, and a test brings them there again.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract import batches, commands, interface, lakes, queries, tables, taps
from contract.files import CONTRACT, write_json, write_lines

from burler import spark


def states() -> None:
    """A file a kind: the STATEs of the first run, then from each of them the messages of the second."""
    logging.disable(logging.CRITICAL)
    for name in taps.KINDS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            first = taps.run(name, 1)
            lines = [{"states": first.states}]
            for state in taps.starts(name, first.states):
                messages = taps.told(taps.run(name, 2, state).messages)
                if len(lines) > 1:  # the schemas are the same each time
                    messages = [message for message in messages if message["type"] != "SCHEMA"]
                lines.append({"from": state, "messages": messages})
            write_lines(CONTRACT / "states" / f"{name}.jsonl", lines)
            os.chdir("/")
    logging.disable(logging.NOTSET)
    for scope in ("full", "touched"):
        with tempfile.TemporaryDirectory() as name:
            lines = CONTRACT / "states-of-commands" / f"{scope}.jsonl"
            first = commands.count(Path(name), 9, scope)
            write_lines(lines, [message for message in first if message["type"] == "STATE"])
            write_lines(lines.with_stem(f"{scope}-second"), commands.count(Path(name), 13, scope, lines))


def fill_lakes() -> None:
    """A folder a lake: the lake, and what it was asked in JSON.

    These can't be made again byte for byte: times at which files were committed, the random words ``generation`` and
    ``writer-id``, and in the shop the times of extraction are other ones each time.
    """
    for name in lakes.NAMES:
        folder = CONTRACT / "lakes" / name
        folder.mkdir(parents=True)
        lakes.fill(name, folder / "lake", folder / "half.json")
        for what, value in lakes.said(folder / "lake", folder / "half.json").items():
            path = folder / what.replace(" ", "-")
            if isinstance(value, list):
                write_lines(path.with_suffix(".jsonl"), value)
            else:
                write_json(path.with_suffix(".json"), value)


def export_tables() -> None:
    """A folder a format: three streams of the shop's lake as tables. Times and names of files are others each time."""
    for form in tables.FORMATS:
        with tables.place(form) as out:
            results = spark.export(None, str(CONTRACT / "lakes" / "shop" / "lake"), str(out), format=form)
            assert len(results) == 3 and not any(result.error for result in results), results
            shutil.copytree(out, CONTRACT / "tables" / form)
            rows = {stream: tables.rows(form, out, stream) for stream in tables.STREAMS}
            write_json(CONTRACT / "tables" / f"{form}.json", rows)


def run_queries() -> None:
    """The checkpoints of two streams of Spark's, and the spool of one: random words and times are others each time."""
    session = queries.session()
    folder = CONTRACT / "offsets"
    for name in queries.NAMES:
        rows = queries.run(session, name, folder / name, CONTRACT / "lakes" / "shop" / "lake", 9)
        write_json(folder / f"{name}.json", {"offsets": queries.offsets(folder / name), "rows": rows})
    for path in folder.rglob("*.crc"):  # sums of Spark's files, which it does not need
        path.unlink()
    session.stop()


def write_batches() -> None:
    """A folder for each way of BATCH: the messages, their files, and what was read of them.

    The names of the files have a random part, and times are other ones each time.
    """
    for name in batches.WAYS:
        kept, messages = batches.make(name, CONTRACT / "batch" / name)
        (CONTRACT / "batch" / f"{name}.jsonl").write_text(kept)
        write_lines(CONTRACT / "batch" / f"{name}-expanded.jsonl", batches.expanded(messages))
        write_lines(CONTRACT / "batch" / f"{name}-read.jsonl", batches.read(messages))


def ask_interface() -> None:
    """What users type and import: commands, options, settings, exit codes, names and signatures."""
    for name, text in interface.helps().items():
        path = CONTRACT / "interface" / "help" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    asked = interface.asked()
    write_lines(CONTRACT / "interface" / "names.jsonl", asked.pop("names").items())
    for name, value in asked.items():
        write_json(CONTRACT / "interface" / f"{name}.json", value)


PARTS: dict[str, Callable[[], None]] = {
    "states": states,
    "lakes": fill_lakes,
    "tables": export_tables,
    "offsets": run_queries,
    "batch": write_batches,
    "interface": ask_interface,
}


def main(words: list[str]) -> None:
    """Make what is asked for."""
    for word in words or PARTS:
        for old in CONTRACT.glob(f"{word}*"):
            shutil.rmtree(old)
        PARTS[word]()


if __name__ == "__main__":
    main(sys.argv[1:])
