"""Rules of area P on how a tap ends when nobody reads, and on what it leaves."""

from __future__ import annotations

from burler.spec.rule import Rule

END_RULES: tuple[Rule, ...] = (
    Rule(
        code="P605",
        name="closed-stdout",
        severity="error",
        title="The reader goes away, and the tap runs on or says that all is well.",
        what="The first line is read, then the pipe is closed. The tap must end within `stop-seconds` (10), and not "
        "with exit code 0. The pipe is as small as the system allows. A tap all of whose output fits into pipe and "
        "buffer may not notice: then nothing is said.",
        why="The target has died. A tap that goes on fetches for hours what nobody gets; one that ends with 0 says "
        "that the rows arrived.",
        mend="Let the error of the write (`BrokenPipeError`) end the run. Do not catch `OSError` round a write, and do "
        "not retry it.",
        breaks="""\
try:
    sys.stdout.write(line)
    sys.stdout.flush()
except OSError:
    pass
""",
        keeps="""\
try:
    sys.stdout.write(line)
    sys.stdout.flush()
except BrokenPipeError:
    os._exit(1)  # with nothing more to be flushed
""",
    ),
    Rule(
        code="P618",
        name="leaves-processes",
        severity="warning",
        title="Processes that the tap has started live on when it has ended.",
        what="A tap is run in a process group of its own. Half a second after its end, in whichever way, no process of "
        "the group may live. SIGTERM is sent to the tap alone, as schedulers and containers do it. Processes that have "
        "left the group are not seen.",
        why="They go on reading the source, hold connections and locks, and may write into the pipe of a run that is "
        "over. After some days the machine is full of them.",
        mend="End them in a `finally`, and pass SIGTERM on. A shell script that starts the tap should do so with "
        "`exec`: then the tap is the process that gets the signal.",
        breaks="""\
worker = subprocess.Popen(["pg_dump", "shop"])
for row in rows_of(worker):
    write_record("orders", row)
""",
        keeps="""\
worker = subprocess.Popen(["pg_dump", "shop"])
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
try:
    for row in rows_of(worker):
        write_record("orders", row)
finally:
    worker.terminate()
""",
    ),
    Rule(
        code="P626",
        name="closed-stdout-traceback",
        severity="info",
        title="The reader goes away, and the tap ends in a traceback.",
        what="In the run whose reader goes away (see P605) there should be no Python traceback on stderr.",
        why="In a pipeline the target has failed, and its error is what people look for. The tap's traceback comes "
        "after it and hides it.",
        mend="Catch `BrokenPipeError` where the program ends, log one line, and exit with a code other than 0. Send "
        "stdout to nowhere first, or Python tries to flush it once more.",
        breaks="""\
main()
""",
        keeps="""\
try:
    main()
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    logger.error("the reader of stdout has gone")
    sys.exit(1)
""",
    ),
)
