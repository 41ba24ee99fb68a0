"""Rules of area P on runs that fail: that they say so, in words that help, and without secrets."""

from __future__ import annotations

from burler.spec.rule import Rule

FAILURE_RULES: tuple[Rule, ...] = (
    Rule(
        code="P604",
        name="no-config",
        severity="warning",
        title="Without --config the tap does not fail at once with an error that helps.",
        what="A command that names a `--config` is run without it. A tap that works without one is left in peace. Else "
        "it must end within 30 seconds, say something on stderr, and write nothing to stdout.",
        why="A missing config is the first mistake that everyone makes. A tap that hangs costs a night of a schedule; "
        "what it writes before it fails is taken for data by the target behind it.",
        mend="Check the config before anything else, and write one line to stderr that names what is missing and where "
        "it belongs.",
        breaks="""\
write_schema("contacts")
token = config["access_token"]
""",
        keeps="""\
if "access_token" not in config:
    raise SystemExit("access_token is missing. Put it into the file of --config.")
write_schema("contacts")
""",
    ),
    Rule(
        code="P609",
        name="sync-failed",
        severity="error",
        title="A run of the tap fails.",
        what="Each sync that verification makes must end with exit code 0, the first one and those from its STATEs. "
        "What the tap said last on stderr is in the message. Runs that verification itself cuts short do not count.",
        why="Rows after the failure are missing. Where only a run from a STATE fails, the first day is good and every "
        "later one is not.",
        mend="Run the same command by hand with the state that the finding names, and mend what it says.",
        breaks="""\
since = state["bookmarks"]["contacts"]["updated_at"]  # no stream has one at first
""",
        keeps="""\
since = state.get("bookmarks", {}).get("contacts", {}).get("updated_at")
""",
    ),
    Rule(
        code="P610",
        name="failure-exits-zero",
        severity="error",
        title="The tap fails, and its exit code is 0.",
        what="The tap is run without its config, and with a config that is an empty object. Where no row comes, though "
        "rows come with its own config, the exit code must not be 0.",
        why="The exit code is all that a scheduler sees. A run that got nothing counts as a good one, nobody is "
        "called, and the gap shows weeks later.",
        mend="Let errors reach the end of the program, or end it with `sys.exit(1)` after the last line of the log.",
        breaks="""\
try:
    main()
except Exception:
    logger.exception("the sync failed")
""",
        keeps="""\
try:
    main()
except Exception:
    logger.exception("the sync failed")
    sys.exit(1)
""",
    ),
    Rule(
        code="P612",
        name="traceback",
        severity="warning",
        title="A mistake in the config ends in a traceback.",
        what="Looked for is the traceback of Python, Go, Java or Rust on stderr of the runs without a config and with "
        "an empty one.",
        why="Who runs a tap has written a config, not the tap. Thirty lines of somebody else's code hide the one fact "
        "that is needed: which key is missing.",
        mend="Check the keys at the start. Catch the error of your own check alone, and log its text without the "
        "traceback.",
        breaks="""\
url = config["base_url"]
""",
        keeps="""\
if "base_url" not in config:
    raise SystemExit("config: base_url is missing. Example: https://api.example.com")
url = config["base_url"]
""",
    ),
    Rule(
        code="P613",
        name="secret-in-log",
        severity="error",
        title="A secret of the config stands on stderr.",
        what="The values of config keys whose names say that they are secret (password, token, api_key, ...) are "
        "looked for on stderr of every run, also as they look in JSON, in a URL and in base64. Values of fewer than "
        "eight characters, and such as stand under an open key as well, are left out: they may be there by accident. "
        "The value itself is never shown.",
        why="Logs are kept for long, sent to other services and read by many. A token in a log has to be taken back.",
        mend="Log which keys a config has, not their values; of a URL its path alone. Errors of HTTP libraries quote "
        "the whole URL: send tokens in a header.",
        breaks="""\
logger.info("config: %s", config)
""",
        keeps="""\
logger.info("config has the keys %s", sorted(config))
""",
    ),
)
