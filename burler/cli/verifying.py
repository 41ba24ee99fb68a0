"""What ``burler verify`` does."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from burler import logs
from burler.cli import common, process
from burler.cli.live import is_terminal, no_colour
from burler.errors import AppError, StorageError, UsageError
from burler.spec.choice import Choice, check_choice
from burler.spec.table import RULES
from burler.suggest import did_you_mean
from burler.verify.options import Options
from burler.verify.pyproject import Project, find_project
from burler.verify.result import Verification

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed
    from burler.engine.run.signals import Stopper
    from burler.verify.baseline import Baseline

logger = logging.getLogger(__name__)

_SUFFIXES = {".json": "json", ".xml": "junit", ".sarif": "sarif", ".html": "html", ".htm": "html", ".txt": "text"}
_WIDTH = 120
_GONE_SHOWN = 10
_CODE = re.compile(r"[a-z]\d*|all", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of ``burler verify``."""

    config: Sequence[str]
    catalog: str | None
    state: str | None
    command: str | None
    earlier_state: Sequence[str]
    select_: Sequence[str]
    ignore: Sequence[str]
    max_records: int | None
    max_seconds: float | None
    resume: bool
    behaviour: bool
    requests: bool
    allow: Allowed
    strict: bool | None
    baseline: str | None
    write_baseline: str | None
    form: str
    report: Sequence[str]
    rules: bool
    explain: str | None

    def check(self, app: str | None) -> None:
        """Before anything is run.

        Raises:
            UsageError: nothing to verify, or too much; reports that can't be written.
        """
        given = [name for name, there in (("APP", app is not None), ("--exec", self.command is not None)) if there]
        if len(given) > 1:
            raise UsageError("APP and --exec are both given. Give one of them.")
        if not given and self.catalog is None:
            raise UsageError("what is to be verified? Give APP, - for messages, --exec COMMAND or --catalog FILE.")
        if self.command is not None and self.config:
            raise UsageError("--config belongs into the command: --exec 'tap-foo --config config.json'.")
        words = [] if self.command is None else self.command.split()
        for option in ("--state", "--catalog", "--properties"):
            if any(word == option or word.startswith(f"{option}=") for word in words):
                own = "--catalog" if option == "--properties" else option
                raise UsageError(f"{option} belongs out of the command, since each run gets another one: {own} FILE.")
        for path in self.report:
            if Path(path).suffix.lower() not in _SUFFIXES:
                raise UsageError(f"--report {path}: the name must end with one of {', '.join(_SUFFIXES)}.")
        inputs = [("--catalog", self.catalog), ("--state", self.state), *(("--config", one) for one in self.config)]
        outputs = [("--report", one) for one in self.report]
        outputs += [("--write-baseline", self.write_baseline)] if self.write_baseline is not None else []
        for at, (option, path) in enumerate(outputs):
            common.keep_apart(option, path, [*inputs, *outputs[:at]])
            common.replaceable(option, path, UsageError)


def verify_command(app: str | None, **given: Any) -> int:
    """Verify; the exit code.

    Raises:
        UsageError: see ``Asked.check``, ``Options``, and what a tap needs to be run; no message on stdin.
    """
    asked = Asked(**given)
    if asked.rules or asked.explain is not None:
        return _tell(asked.explain)
    asked.check(app)
    signal.signal(signal.SIGTERM, _end)
    project = find_project(Path.cwd())
    _hush()
    steps = _Steps()
    options = _options(asked, project, steps)
    baseline = _baseline(asked, project)
    strict = project.strict if asked.strict is None else asked.strict
    from burler.cli.progress import progress
    from burler.engine.run.signals import Stopper

    stopper = Stopper()  # for messages on stdin; a tap that is run is ended by the exception
    # Asked before stdout is ours: from then on what it leads to is no terminal of the user's.
    columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    with process.own_stdout() as writer:
        known = None if asked.write_baseline is not None else baseline
        with progress(lambda: steps.now) as steps.drawn:
            verification = _verify(app, asked, options, known, stopper)
        silent = app == "-" and not verification.runs[0].lines and verification.runs[0].ended != "stopped"
        if asked.write_baseline is not None and stopper.signal is not None:
            logger.warning("it was stopped: the baseline %s is left as it is", asked.write_baseline)
        elif asked.write_baseline is not None and not silent:
            from burler.verify.baseline import write_baseline

            write_baseline(Path(asked.write_baseline), verification.findings)
            logger.info("%d findings are in the baseline %s", len(verification.findings), asked.write_baseline)
        try:
            _reports(asked, verification, strict=strict)
        finally:  # a verification takes long: what it found is shown, whatever becomes of a file
            writer.write(_report(verification, asked.form, strict=strict, columns=columns))
            writer.flush()
    if not verification.checked and not verification.findings and asked.write_baseline is None and not silent:
        reasons = "; ".join(dict.fromkeys(verification.unchecked.values())) or "no rule was asked for"
        raise UsageError(f"no rule was looked at ({reasons}): what was asked for shows nothing of this tap.")
    if silent:
        raise UsageError("not one message came: has the tap failed? Its exit code shows with: set -o pipefail")
    if verification.gone:
        shown = ", ".join(verification.gone[:_GONE_SHOWN])
        more = f" and {len(verification.gone) - _GONE_SHOWN} more" if len(verification.gone) > _GONE_SHOWN else ""
        logger.info("the baseline knows what no longer occurs: %s%s. --write-baseline makes it smaller", shown, more)
    if stopper.signal is not None:
        return 128 + stopper.signal
    if asked.write_baseline is not None:
        return 0
    return verification.exit_code(strict=strict)


def _end(number: int, _frame: object) -> NoReturn:
    """SIGTERM ends a verification as Ctrl-C does: the tap's processes go with it."""
    raise SystemExit(128 + number)


def _options(asked: Asked, project: Project, progress: Callable[[str], None]) -> Options:
    choice = Choice(
        select=_words(asked.select_) or project.choice.select,
        ignore=(*project.choice.ignore, *_words(asked.ignore)),
        per_stream=project.choice.per_stream,
    )
    check_choice(choice, RULES)
    return Options(
        choice=choice,
        limits=project.limits,
        max_records=asked.max_records or project.max_records,
        max_seconds=asked.max_seconds or project.max_seconds,
        resume=asked.resume,
        behaviour=asked.behaviour,
        watch_requests=asked.requests,
        catalog=common.read_catalog(asked.catalog, None),
        state=None if asked.state is None else _state(asked.state),
        earlier_states=tuple((path, _state(path)) for path in asked.earlier_state),
        allow=asked.allow,
        progress=progress,
    )


def _state(path: str) -> Any:
    """A state of any tap: what is inside of it is the tap's own. STATE lines count as ``burler run`` reads them.

    Raises:
        StateError: it can't be read, or is no object.
    """
    try:
        value = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return common.read_state(path)  # STATE lines; or it says what is wrong
    return value if isinstance(value, dict) and not isinstance(value.get("type"), str) else common.read_state(path)


def _words(given: Sequence[str]) -> tuple[str, ...]:
    words = (word.strip() for one in given for word in one.split(","))
    return tuple(word.upper() if _CODE.fullmatch(word) else word for word in words if word)


class _Steps:
    """What is done next: a verification runs the tap a dozen times. In a log a line for each."""

    def __init__(self) -> None:
        self.now = ""
        self.drawn = False

    def __call__(self, text: str) -> None:
        self.now = f"verify: {logs.harmless(text)}"
        if not self.drawn:
            logger.info("verify: %s", text)


def _hush() -> None:
    """What the tap's runs log would hide the report: they say what goes wrong, unless a level was asked for; only the
    command line itself goes on."""
    if "BURLER_LOG_LEVEL" not in os.environ and not os.environ.get("LOGGING_CONF_FILE"):
        logging.getLogger("burler").setLevel(logging.WARNING)
        logging.getLogger("burler.cli").setLevel(logging.INFO)


def _baseline(asked: Asked, project: Project) -> Baseline | None:
    path = Path(asked.baseline) if asked.baseline is not None else project.baseline
    if path is None or (asked.write_baseline is not None and not path.exists()):
        return None
    from burler.verify.baseline import read_baseline

    return read_baseline(path)


def _verify(
    app: str | None, asked: Asked, options: Options, baseline: Baseline | None, stopper: Stopper
) -> Verification:
    from burler.verify import given, verifying

    if app == "-":
        return _messages(asked, options, baseline, stopper)
    if asked.command is not None:
        from burler.verify.program import Program
        from burler.verify.subject_program import ProgramSubject

        return verifying.verify(ProgramSubject(Program.of_command(asked.command)), options, baseline=baseline)
    if app is None:
        return given.verify_catalog(options.catalog, subject=asked.catalog or "", options=options, baseline=baseline)
    from burler.verify.subject_app import app_subject

    try:
        subject = app_subject(app, asked.config)
    except AppError as error:
        others = "Any other tap: burler verify --exec 'COMMAND'. Messages in a file: burler verify - < FILE"
        raise AppError(f"{error}\n  {others}") from None
    return verifying.verify(subject, options, baseline=baseline)


def _messages(asked: Asked, options: Options, baseline: Baseline | None, stopper: Stopper) -> Verification:
    """The messages on stdin."""
    from burler.config.loading import read_config_file
    from burler.config.secrets import secret_values
    from burler.engine.run.start import calm_collector
    from burler.singer.lines import blocks
    from burler.verify.given import verify_messages

    stdin = sys.stdin
    if stdin is None or stdin.isatty():
        raise UsageError("burler verify - reads messages from stdin: tap-foo --config c.json | burler verify -")
    secrets = [secret for path in asked.config for secret in secret_values(read_config_file(path))]
    with stopper.installed(), calm_collector(50_000):
        taken = blocks(stdin.buffer, tick=lambda: None, due=lambda: None, stop=lambda: stopper.requested)
        return verify_messages(
            taken, subject="-", options=options, secrets=secrets, baseline=baseline, stopped=lambda: stopper.requested
        )


def _report(verification: Verification, form: str, *, strict: bool, columns: int | None = None) -> bytes:
    """``columns``: of the terminal that it is for, if it is for one."""
    from burler.verify.report import report_bytes

    width = min(_WIDTH, columns or _WIDTH)
    return report_bytes(verification, form, width=width, colour=columns is not None and not no_colour(), strict=strict)


def _reports(asked: Asked, verification: Verification, *, strict: bool) -> None:
    from burler.localfile import replace_file

    failed: list[str] = []
    for path in asked.report:
        content = _report(verification, _SUFFIXES[Path(path).suffix.lower()], strict=strict)
        try:
            replace_file(common.replaceable("--report", path, UsageError), content)
        except OSError as error:  # the other reports are written all the same
            failed.append(f"--report {path} can't be written: {error.strerror}.")
    if failed:
        raise StorageError("\n".join(failed))


def _tell(rule: str | None) -> int:
    """What a rule is about; or all rules."""

    from burler.spec.explain import explain, rules_text

    with process.printing() as say:
        if rule is None:
            say(rules_text(RULES.values()))
            return 0
        found = next((one for one in RULES.values() if rule.upper() == one.code or rule == one.name), None)
        below = [one for one in RULES.values() if rule and one.code.startswith(rule.upper())]
        if found is None and below:
            say(rules_text(below))
            return 0
        if found is None:
            hint = did_you_mean(rule, [*RULES, *(one.name for one in RULES.values())])
            raise UsageError(f"no rule is called '{rule}'.{hint} See: burler verify --rules")
        say(explain(found))
    return 0
