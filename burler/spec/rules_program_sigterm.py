"""Rules of area P on SIGTERM, by which schedulers, containers and Ctrl-C of a pipeline end a tap."""

from __future__ import annotations

from burler.spec.rule import Rule

_HOW = (
    "The tap is run until its first row has come; then nothing is read for a moment, so that it stands at a full pipe "
    "as it does behind a slow target; it gets SIGTERM, and reading goes on. "
)
_FLAG = """\
stopping = False


def stop(number, frame):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
"""

SIGTERM_RULES: tuple[Rule, ...] = (
    Rule(
        code="P606",
        name="sigterm-ignored",
        severity="warning",
        title="SIGTERM does not end the tap.",
        what=_HOW + "It must end within `stop-seconds` (10). Reported as well: SIGTERM is switched off in it (Linux "
        "tells), or all rows of a whole run come and it has clearly gone on with its work. What this shows is one "
        "place of a run; a tap that waits for a slow reply when the signal comes is not tried.",
        why="After its grace period (10 to 30 seconds) it is killed with SIGKILL, in the middle of whatever it does, "
        "and every deployment waits as long as that.",
        mend="Leave SIGTERM alone, which ends a process; or set a flag in a handler and look at it after each page.",
        breaks="""\
signal.signal(signal.SIGTERM, signal.SIG_IGN)
""",
        keeps=_FLAG
        + """
for page in pages:
    write_page(page)
    if stopping:
        break
""",
    ),
    Rule(
        code="P607",
        name="torn-line",
        severity="error",
        title="Told to stop, the tap ends with half a line.",
        what=_HOW + "When the tap ends by itself after that, its last line must be whole.",
        why="The target reads half a message, and fails over it before it has stored what came before; one that skips "
        "the line loses the row, while the tap says that it ended well.",
        mend="Do not raise an exception, or exit, in the handler: a write may be under way. Set a flag, and end "
        "between two messages. With PYTHONUNBUFFERED set, Python drops the rest of a write that a signal cuts short: "
        "write bytes with `os.write` in a loop.",
        breaks="""\
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
""",
        keeps=_FLAG
        + """
for row in rows:
    write_record("orders", row)
    if stopping:
        break
write_state(state)
""",
    ),
    Rule(
        code="P608",
        name="sigterm-loses",
        severity="error",
        title="Rows are lost when the tap is stopped and run again.",
        what=_HOW + "A tap that ends by itself is then run from the last STATE that it wrote. The keys of the rows of "
        "both runs together must be all those of a whole run. Streams without keys, and sources of more than 200,000 "
        "rows, are left out.",
        why="The STATE says that rows were read which never came. No later run asks for them: they stay missing.",
        mend="Let the bookmark follow the rows that are written, not those that are fetched, and write the last STATE "
        "from it. A stream that was cut short keeps its old bookmark unless its rows come in the bookmark's order.",
        breaks="""\
except Stopped:
    state["bookmarks"]["orders"] = {"updated_at": run_started}
    write_state(state)
""",
        keeps="""\
except Stopped:
    state["bookmarks"]["orders"] = {"updated_at": last_written["updated_at"]}
    write_state(state)
""",
    ),
    Rule(
        code="P619",
        name="torn-line-killed",
        severity="warning",
        title="SIGTERM kills the tap in the middle of a line.",
        what=_HOW + "A tap without a handler is ended by the system, at once. Reported if that leaves half a line.",
        why="The target fails over the half line, often before it has stored the rows and the STATE that came before. "
        "The run has to be made again from further back.",
        mend="Handle SIGTERM (see P606), or write each line at once: lines of up to 4096 bytes that are flushed one by "
        "one can't be cut.",
        breaks="""\
print(json.dumps(message))  # kept in a buffer, and written when 8192 bytes are there
""",
        keeps="""\
print(json.dumps(message), flush=True)
""",
    ),
    Rule(
        code="P620",
        name="sigterm-exit-code",
        severity="warning",
        title="Stopped by SIGTERM, the tap ends as if it had failed.",
        what=_HOW + "The exit code should be 0 (ended in order, with its last STATE), 143, or that of a process that "
        "SIGTERM ended.",
        why="Who stopped the tap on purpose can't tell this from a failure: the run is reported as broken, people are "
        "called, it is tried again at once.",
        mend="Let the exception that the handler raises end in `sys.exit(143)`, or in exit code 0 once the last STATE "
        "is out.",
        breaks="""\
def stop(number, frame):
    raise RuntimeError("terminated")


signal.signal(signal.SIGTERM, stop)
""",
        keeps=_FLAG
        + """
for page in pages:
    write_page(page)
    if stopping:
        write_state(state)
        sys.exit(0)
""",
    ),
    Rule(
        code="P623",
        name="sigterm-without-state",
        severity="warning",
        title="Stopped half-way, the tap says that all is done.",
        what=_HOW + "Reported if it ends with exit code 0, not all rows of a whole run came, and rows came after the "
        "last STATE.",
        why="Exit code 0 says that the run is complete. The next run reads the rows again, which costs time; half of a "
        "FULL_TABLE stream is taken for all of it.",
        mend="Write a STATE that covers the last row before the end, or end with 143.",
        breaks=_FLAG
        + """
for row in rows:
    if stopping:
        sys.exit(0)
    write_record("orders", row)
""",
        keeps=_FLAG
        + """
for row in rows:
    if stopping:
        write_state(state)
        sys.exit(0)
    write_record("orders", row)
""",
    ),
    Rule(
        code="P624",
        name="partial-table-activated",
        severity="error",
        title="Stopped in the middle of a table, the tap activates what came of it.",
        what=_HOW + "Reported if a stream has sent fewer rows than in a whole run, and an ACTIVATE_VERSION after them.",
        why="ACTIVATE_VERSION tells a target that a version is complete: it deletes all rows of older ones. The rows "
        "that were not sent this time are gone from the table until the next whole run.",
        mend="Write ACTIVATE_VERSION after the last row alone, never in a `finally`.",
        breaks="""\
try:
    for row in rows:
        write_record("products", row, version=version)
finally:
    write_message(singer.ActivateVersionMessage("products", version))
""",
        keeps="""\
for row in rows:
    write_record("products", row, version=version)
write_message(singer.ActivateVersionMessage("products", version))
""",
    ),
)
