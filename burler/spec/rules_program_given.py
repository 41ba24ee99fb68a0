"""Rules of area P on what a tap makes of the catalogs and states that it is given."""

from __future__ import annotations

from burler.spec.rule import Rule

GIVEN_RULES: tuple[Rule, ...] = (
    Rule(
        code="P601",
        name="both-given",
        severity="error",
        title="The tap fails when --catalog and --properties are both given.",
        what="A tap whose `--help` names both is run with both; they hold the same catalog, the second one with "
        "`selected` in its schemas as well. It must not fail before its first row. The run is ended there.",
        why="Schedulers do not know which of the two flags a tap reads, so some give both. A tap that takes this for a "
        "mistake can't be run by them.",
        mend="Read `--catalog` where it is given, else `--properties`, and log a warning that the other one does not "
        "count.",
        breaks="""\
if args.catalog and args.properties:
    raise SystemExit("--catalog and --properties exclude each other")
""",
        keeps="""\
if args.catalog and args.properties:
    logger.warning("--properties does not count beside --catalog")
catalog = args.catalog or args.properties
""",
    ),
    Rule(
        code="P602",
        name="empty-selection",
        severity="error",
        title="With no stream selected the tap fails, or sends rows.",
        what="The tap is run with its catalog in which every stream has `selected: false`. It must end with exit code "
        "0, and send no RECORD, no BATCH and no ACTIVATE_VERSION. Streams whose own metadata say `inclusion: "
        "automatic` can't be deselected and may come.",
        why="Rows that nobody asked for land in tables that nobody expects, and personal data with them. "
        "ACTIVATE_VERSION of a stream whose rows are not sent lets a target empty its table.",
        mend="Ask the catalog for each stream before anything of it is sent, children of other streams included. No "
        "selected stream is a short run, not a mistake.",
        breaks="""\
for stream in catalog["streams"]:
    sync(stream)
""",
        keeps="""\
for stream in catalog["streams"]:
    if is_selected(stream):
        sync(stream)
""",
    ),
    Rule(
        code="P603",
        name="empty-source",
        severity="error",
        title="A run that finds nothing new fails, or loses bookmarks.",
        what="The tap is run from the last STATE of a whole run, and from the same one with each date and time in it "
        "set to the moment of the run, which a source has nothing newer than. Both must end with exit code 0, send no "
        "row before its stream's SCHEMA, and have each bookmark that they were given in the last STATE that they "
        "write; a run that writes none keeps them all. What is looked at is whether a bookmark is there, not its "
        "value. This is as close to an empty source as a tap's own data allow: where resuming reads the last row "
        "again, or bookmarks are numbers, some rows still come.",
        why="The next run is given the last STATE. A bookmark that is not in it is forgotten: that run reads "
        "everything again, and again after the next quiet night.",
        mend="Begin with the state that was given and change in it only what rows have moved: "
        "`max(rows)` of no rows is the old bookmark.",
        breaks="""\
state = {"bookmarks": {}}
newest = max(row["updated_at"] for row in rows)  # fails where there are none
""",
        keeps="""\
state = given_state or {"bookmarks": {}}
newest = max((row["updated_at"] for row in rows), default=bookmark)
""",
    ),
    Rule(
        code="P616",
        name="properties-ignored",
        severity="warning",
        title="The tap knows --properties, and does not work with it alone.",
        what="A tap whose `--help` names `--properties` beside `--catalog` is run with `--properties` alone. Reported "
        "if it fails, or if no row comes though rows came with `--catalog`.",
        why="Older schedulers know `--properties` alone. What `--help` promises is what they go by: with such a tap "
        "they get an error, or a run that succeeds and brings nothing.",
        mend="Read the file as a catalog: it has the same form, with `selected` in the schemas where it is not in the "
        "metadata. Or take the flag out of `--help`.",
        breaks="""\
parser.add_argument("--properties")
streams = load(args.catalog)["streams"] if args.catalog else []
""",
        keeps="""\
parser.add_argument("--properties")
streams = load(args.catalog or args.properties)["streams"]
""",
    ),
    Rule(
        code="P621",
        name="deselected-bookmark-lost",
        severity="warning",
        title="Streams that are not selected lose their bookmarks.",
        what="In the run with nothing selected (see P602) the tap is given the last STATE of a whole run. Each "
        "bookmark of it must be in the last STATE that the tap writes, if it writes one.",
        why="The last STATE takes the place of the one before. Who deselects a stream for a day reads all of it again "
        "afterwards.",
        mend="Keep all of the state that was given, also of streams that do not run.",
        breaks="""\
state = {"bookmarks": {name: given[name] for name in selected}}
""",
        keeps="""\
state = {"bookmarks": dict(given)}
""",
    ),
    Rule(
        code="P622",
        name="empty-without-schema",
        severity="info",
        title="A selected stream without new rows sends no SCHEMA.",
        what="In the run from the last STATE (see P603) each selected stream should send its SCHEMA, with rows or "
        "without.",
        why="Targets make a table when its SCHEMA comes. Of a stream that is empty on the first day there is no table, "
        "and the queries on it fail until its first row. New columns wait for a row, too.",
        mend="Write the SCHEMA when the stream begins, before the first request.",
        breaks="""\
for i, row in enumerate(rows):
    if i == 0:
        write_schema(stream)
    write_record(stream, row)
""",
        keeps="""\
write_schema(stream)
for row in rows:
    write_record(stream, row)
""",
    ),
    Rule(
        code="P625",
        name="deselected-field",
        severity="error",
        title="Fields that are deselected come all the same.",
        what="The tap is run with a catalog in which every field has `selected: false`, except keys, replication keys "
        "and what the metadata call `automatic`; one field stays where there is none of these. A value in a field that "
        "is deselected is reported, a null is not. The run ends when each stream has sent a row.",
        why="Fields are deselected because they are personal, secret or large. Here they land in the warehouse "
        "although somebody has said no.",
        mend="Ask the metadata of each field before the row is written: `automatic` is sent, `unsupported` is not, "
        "else `selected` counts, then `selected-by-default`. Leave them out of the SCHEMA as well.",
        breaks="""\
write_record(stream, row)
""",
        keeps="""\
write_record(stream, {name: value for name, value in row.items() if is_selected(name)})
""",
    ),
    Rule(
        code="P627",
        name="catalog-ignored",
        severity="error",
        title="The tap knows --catalog, and goes by --properties alone.",
        what="A tap whose `--help` names both flags, and that writes nothing at all when it is given a catalog by "
        "`--catalog`, is given it by `--properties`. If messages come then, this is reported, and all further runs are "
        "made with `--properties`.",
        why="The run ends with exit code 0, so the scheduler takes a source for read of which no row was read. Nobody "
        "sees it before somebody misses the rows.",
        mend="Read `args.catalog` where it is given, else `args.properties`. A run that was given neither should say "
        "so, and fail.",
        breaks="""\
if args.properties:
    sync(args.properties)
""",
        keeps="""\
sync(args.catalog.to_dict() if args.catalog else args.properties)
""",
    ),
)
