"""Rules of area P on discovery."""

from __future__ import annotations

from burler.spec.rule import Rule

DISCOVERY_RULES: tuple[Rule, ...] = (
    Rule(
        code="P611",
        name="stdout-noise",
        severity="error",
        title="Discovery prints more than the catalog on stdout.",
        what="What `--discover` writes to stdout must be one JSON object. Reported is text before or after it.",
        why="The output goes straight into a file, and that into a JSON parser, which refuses it.",
        mend="Log to stderr (Python's `logging` does so by default) and leave `print` to the catalog. Programs that "
        "the tap starts inherit stdout: send theirs to stderr, too.",
        breaks="""\
print("discovering ...")
json.dump(catalog, sys.stdout)
""",
        keeps="""\
logger.info("discovering ...")
json.dump(catalog, sys.stdout)
""",
    ),
    Rule(
        code="P614",
        name="discovery-fails",
        severity="error",
        title="Discovery fails, or prints no catalog.",
        what="`--discover` must end with exit code 0 and print an object with a list `streams`.",
        why="Without a catalog nobody can choose streams and fields, and most schedulers do not run the tap at all.",
        mend="Run the command with `--discover` by hand and mend what it says. A source that can't be asked without "
        "credentials may need its schemas in files.",
        breaks="""\
json.dump({"contacts": schema}, sys.stdout)
""",
        keeps="""\
json.dump({"streams": [{"tap_stream_id": "contacts", "stream": "contacts", "schema": schema}]}, sys.stdout)
""",
    ),
    Rule(
        code="P615",
        name="discovery-unstable",
        severity="warning",
        title="Two discoveries in a row differ.",
        what="`--discover` is run twice and the catalogs are compared, stream by stream. The order of streams, of "
        "fields and of list entries does not count.",
        why="A catalog is kept and compared with the next one to see what has changed in the source. One that changes "
        "by itself hides the true changes, and selections that people made no longer fit.",
        mend="Leave times, random ids and counts of rows out of the catalog, and do not guess types from a few rows "
        "that differ each time.",
        breaks="""\
entry["metadata"][0]["metadata"]["discovered-at"] = time.time()
""",
        keeps="""\
entry["metadata"][0]["metadata"]["inclusion"] = "available"
""",
    ),
)
