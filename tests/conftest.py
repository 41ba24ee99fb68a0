"""Rules for all tests: no stream stays bound in the main context; in CI nothing is skipped in silence; no secret is
found in what tests have written."""

from __future__ import annotations

import contextvars
import fnmatch
import functools
import gc
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import hypothesis
import msgspec
import pytest

import burler.testing
import support.cli
import support.servers
from burler.errors import BurlerError
from burler.testing import canaries_in
from support.internals import config_secrets, log_settings, settings


def bound_by_burler():
    """The context variables of burler's that have a value here."""
    context = contextvars.copy_context()
    return {
        variable: context[variable]
        for variable in context
        if variable.name.startswith("burler") and context[variable] is not None
    }


@pytest.fixture(autouse=True)
def no_stream_stays_bound():
    """Fails a test that ends with a stream run bound in the main context."""
    before = bound_by_burler()
    yield
    left = {variable: value for variable, value in bound_by_burler().items() if before.get(variable) is not value}
    for variable in left:
        variable.set(before.get(variable))
    if left:
        pytest.fail(f"the test left {list(left.values())} bound in the main context")


@pytest.fixture(autouse=True)
def the_log_is_as_it_was():
    """Commands set the level and the handlers of burler's log; what one test leaves there must not reach the next."""
    log, of_commands = logging.getLogger("burler"), logging.getLogger("burler.cli")
    level, propagate, handlers = log.level, log.propagate, list(log.handlers)
    level_of_commands = of_commands.level
    formatters = [(handler, handler.formatter) for handler in logging.root.handlers]
    log_settings.log_settings.follow(settings.Settings())
    yield
    log.setLevel(level)
    of_commands.setLevel(level_of_commands)
    log.propagate = propagate
    log.handlers[:] = handlers
    # pytest hands its handler to loggers that do not propagate, and those of pyspark make it write JSON from then on.
    for handler, formatter in formatters:
        handler.setFormatter(formatter)
    for other in list(logging.root.manager.loggerDict.values()):
        if type(other).__name__ == "PySparkLogger":
            other.propagate = True


@pytest.fixture(autouse=True)
def secrets_of_other_tests_are_forgotten():
    """What a test has hidden from logs stays hidden in its process: after thousands each masking would take long."""
    yield
    no_secrets = config_secrets.no_secrets
    if no_secrets._added:
        no_secrets._added.clear()
        no_secrets._gather()


@pytest.fixture(scope="session")
def docs_pages(tmp_path_factory):
    """README and all pages of the docs, made ones too, as a reader has them: place from docs/ on -> text."""
    docs = Path(__file__).resolve().parents[1] / "docs"
    sys.path.append(str(docs))
    import making

    reference = tmp_path_factory.mktemp("docs") / "reference"
    making.write(reference)
    made_pages = {f"reference/{path.relative_to(reference).as_posix()}": path for path in reference.rglob("*.md")}
    paths = {"../README.md": docs.parent / "README.md", **{path.name: path for path in docs.glob("*.md")}, **made_pages}
    texts = {place: path.read_text(encoding="utf-8") for place, path in paths.items()}
    pages = {place: text for place, text in texts.items() if "/tables/" not in place}
    include = re.compile(r"```\{include\} (\S+)\n```\n")
    return {place: include.sub(lambda found: texts[found[1]], text) for place, text in pages.items()}


@pytest.fixture
def metrics_of_requests():
    """Each HTTP request has its METRIC line."""
    log_settings.log_settings.follow(settings.Settings(metrics="requests"))


@pytest.fixture
def values_in_logs(monkeypatch):
    """As with the setting ``log_values``, whatever the settings of a run are."""
    monkeypatch.setattr(log_settings.LogSettings, "follow", lambda *_settings: None)
    log_settings.log_settings.values = True


# A push looks at some examples, the same each time; `make nightly` (--hypothesis-profile=nightly) at many, others each
# night. A busy machine is no reason to fail.
_QUIET = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("push", max_examples=60, derandomize=True, **_QUIET)
hypothesis.settings.register_profile("nightly", max_examples=600, print_blob=True, **_QUIET)
hypothesis.settings.load_profile("push")

# No test trains an archive of Spark's classes behind the others' backs; those of the archive turn it on themselves, and
# .ci/run makes one for all.
os.environ.setdefault("BURLER_SPARK_ARCHIVE", "off")
# Tests start thousands of processes: with this set, as in many containers, each would compile what it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What they import of tests/support is found by them, too.
_PATH = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(Path(__file__).parent)]
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_PATH))

_LONG = ("tests/test_demo.py", "tests/engine", "tests/spark", "tests/peers", "examples", "tests/lake")
"""Where the files are that take long: they go first, so that no process waits for another in the end."""


def pytest_make_parametrize_id(config, val, argname):
    """Bytes are named by the argument: packed ones hold the time they were made at, and each process has its own."""
    if isinstance(val, bytes) and (len(val) > 40 or not val.isascii() or not val.decode().isprintable()):
        return argname
    return None


_SPARK = "tests/spark/"
_NO_JVM = (
    *("lakesource/", "test_compacted_plans.py", "test_java.py", "test_types.py", "test_unite.py"),
    *("export/test_options.py", "export/test_tables_page.py", "export/test_without_spark.py"),
    *("formats/test_kills.py", "formats/test_opening.py", "formats/test_readers.py"),
    *("sessions/test_archive.py", "sessions/test_own_session.py", "types/test_types_page.py"),
    *("source/test_source_commands.py", "source/test_source_options.py", "source/test_source_tasks.py"),
    *("streaming/test_app_streams.py", "streaming/test_lake_streams.py"),
)
"""Files there whose tests need no session, or make their own: another process may run them beside the others."""


def _shares_spark(file):
    """Whether a file's tests run in the session that all such tests share, since the start of a JVM is dear."""
    return file.startswith(_SPARK) and "storm" not in file and not file[len(_SPARK) :].startswith(_NO_JVM)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs all files that share a Spark. (xdist's own groups are of tests, and go by names that pytest 9
    no longer lets it change.)"""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneSpark(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return _SPARK if _shares_spark(file) else file

    return OneSpark(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """18,000 tests are objects that stay: the garbage collector, which would look at all of them again and again, here
    and while they run, leaves them out."""
    first, collected = getattr(session.config, "workerinput", {}).get(_COLLECTED, (True, None))
    deadline = time.monotonic() + 300
    while not first and not Path(collected).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        if first and collected is not None:
            Path(collected).touch()


_COLLECTED = "burler_collected"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """In a fresh clone the first process compiles the tests, and what they import; the others wait for that, where each
    would do all of it for itself at the same time: half of the CPU until the first test."""
    config = node.config
    if any(Path(__file__).parent.glob("engine/__pycache__/*")):
        return
    folder = getattr(config, _COLLECTED, None)
    if folder is None:
        folder = tempfile.mkdtemp(prefix="burler-collected-")
        setattr(config, _COLLECTED, folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    node.workerinput[_COLLECTED] = (node.gateway.id == "gw0", f"{folder}/done")


def pytest_collection_modifyitems(config, items):
    """The order of files (within one nothing moves)."""
    root = config.rootpath

    def place(item):
        try:
            path = item.path.relative_to(root).as_posix()
        except ValueError:
            return len(_LONG)
        if _shares_spark(path):  # one after the other: the longest of all
            return -1
        return next((at for at, begin in enumerate(_LONG) if path.startswith(begin)), len(_LONG))

    items.sort(key=place)


def pytest_report_collectionfinish(config, items):
    """What a push leaves to the night."""
    if config.option.markexpr == "not nightly":
        return "tests marked 'nightly' run in make nightly; of each property 60 examples run here, 600 there"
    return None


def _is_ci() -> bool:
    return os.environ.get("CI") == "true"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With CI=true a test that skips itself fails, and its reason is shown; so does an xfail."""
    outcome = yield
    report = outcome.get_result()
    if _is_ci() and report.skipped:
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"skipped in CI, where nothing may be: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """The same for a module that skips itself as a whole."""
    outcome = yield
    report = outcome.get_result()
    if _is_ci() and report.skipped:
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"skipped in CI, where nothing may be: {reason}"


# ---- the search for secrets -----------------------------------------------------------------------


class SecretSearch:
    """Searches all that tests write for values of ``burler.testing.canary``.

    After each phase of a test: its captured output and log, what it read of them itself, the output of processes that
    it ran to their end, messages and errors of ``run_tap``, the text of every error of burler's. A find fails the test.
    At the end of the session: all files below the base folder of temporary files, also inside of gzip, except those
    that may hold secrets: ``config*.json``, and what a test has named with the fixture ``may_hold_secrets``. Where
    tests run on several processes each searches its own folder, since it alone knows what its tests have named, and
    hands its finds to the process that tells them.
    """

    MAY_HOLD = ("config*.json", ".config*.json.*.tmp")
    LEFT_OUT = (".git", "__pycache__", "site-packages", ".hypothesis")
    MOST_BYTES = 5 << 20
    TOLD = "burler_secrets_in_files"

    def __init__(self):
        self.allowed = set()
        self.made = False  # whether there are any in this process
        self.others = False  # whether other processes run the tests
        self.finds = []  # of the phase that runs
        self.in_files = []
        self.undo = []

    def look(self, where, content):
        """Note the canaries in a text."""
        if content:
            self.finds += [f"{where}: {find}" for find in canaries_in(content)]

    def watch(self):
        """Look at what passes through some functions."""
        self._wrap(subprocess.Popen, "communicate", lambda given, self_, *_a: self._outputs("a process", given))
        self._wrap(pytest.CaptureFixture, "readouterr", lambda given, *_a: self._outputs("output", given))
        self._wrap(support.cli, "_in_this_process", lambda given, *_a: self._outputs("a command", given[1:]))
        self._wrap(burler.testing, "canary", lambda *_a: setattr(self, "made", True))
        self._wrap(burler.testing, "run_tap", lambda given, *_a: self._run(given))
        self._wrap(BurlerError, "__init__", lambda _given, error, *_a: self.look("an error", Exception.__str__(error)))
        self._wrap(pytest.LogCaptureFixture, "clear", None, before=lambda log: self.look("the log", log.text))

    def unwatch(self):
        """As it was before."""
        for undo in self.undo:
            undo()

    def _wrap(self, owner, name, after, before=None):
        function = getattr(owner, name)

        @functools.wraps(function)
        def wrapped(*args, **options):
            if before is not None:
                before(*args)
            given = function(*args, **options)
            if after is not None:
                after(given, *args)
            return given

        own = name in vars(owner)
        setattr(owner, name, wrapped)
        self.undo.append(lambda: setattr(owner, name, function) if own else delattr(owner, name))

    def _outputs(self, what, given):
        self.look(f"stdout of {what}", given[0])
        self.look(f"stderr of {what}", given[1])

    def _run(self, out):
        if self.made:  # before there are any, thousands of runs need not be encoded
            self.look("messages of run_tap", msgspec.json.encode(out.messages, enc_hook=repr))
            for error in out.result.errors.values():
                self.look("an error of run_tap", str(error))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Fail a phase of a test that shows a secret. One that has failed may show what it likes."""
        outcome = yield
        report = outcome.get_result()
        for title, text in report.sections:
            if title.endswith(f" {report.when}"):
                self.look(title, text)
        finds, self.finds = self.finds, []
        if finds and not report.failed:
            report.outcome = "failed"
            report.longrepr = "\n".join(["a secret is shown (see SecretSearch in tests/conftest.py)", *finds])
            report.sections = [section for section in report.sections if not any(canaries_in(section[1]))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        """Search the files."""
        factory = getattr(session.config, "_tmp_path_factory", None)
        base = getattr(factory, "_basetemp", None)  # None if no test has asked for a folder
        if base is not None and not self.others:
            self.in_files += self.search(Path(base))
        told = getattr(session.config, "workeroutput", None)
        if told is not None:
            told[self.TOLD] = self.in_files
        elif self.in_files and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Another process has ended: what it found."""
        self.others = True
        self.in_files += getattr(node, "workeroutput", {}).get(self.TOLD, ["a process ended without a search"])

    def pytest_terminal_summary(self, terminalreporter):
        """Say what stands in files."""
        if self.in_files:
            terminalreporter.section("secrets in files", red=True)
            for find in self.in_files:
                terminalreporter.write_line(find)

    def search(self, folder):
        """Yield the finds in all files below a folder."""
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() or Path(entry.path) in self.allowed:
                    continue
                try:
                    if entry.is_dir():
                        if entry.name not in self.LEFT_OUT:
                            yield from self.search(entry.path)
                    elif entry.is_file() and 0 < entry.stat().st_size < self.MOST_BYTES and self._counts(entry.name):
                        yield from (f"{entry.path}: {find}" for find in self._in_file(Path(entry.path)))
                except OSError:  # a folder that a test has closed for everybody
                    continue

    def _counts(self, name):
        return not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.MAY_HOLD)

    def _in_file(self, path):
        content = path.read_bytes()
        while content.startswith(b"\x1f\x8b"):  # one part behind the other
            inflate = zlib.decompressobj(31)
            try:
                yield from canaries_in(inflate.decompress(content, 10 * self.MOST_BYTES))
            except zlib.error:  # broken by a test
                break
            content = inflate.unused_data
        yield from canaries_in(content)


def pytest_configure(config):
    support.servers.CONFIG = config
    search = SecretSearch()
    config.pluginmanager.register(search, "burler-secret-search")
    search.watch()
    config.add_cleanup(search.unwatch)


@pytest.fixture
def may_hold_secrets(request):
    """Names a file or folder in which secrets may stand: ``may_hold_secrets(path)`` gives it back."""
    search = request.config.pluginmanager.get_plugin("burler-secret-search")

    def named(path):
        search.allowed.add(Path(path))
        return path

    return named


def pytest_unconfigure(config):
    """What Spark's client says when it is collected at the very end would stand behind pytest's summary."""
    logging.raiseExceptions = False
