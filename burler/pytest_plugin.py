"""The pytest plugin: the rules of Singer as tests of any tap, without a line of test code (docs/verify.md).

    pytest --burler-app tap_crm.py --burler-config config.json
    pytest --burler-exec 'tap-gitlab --config config.json'

It does nothing unless one of these is given, on the command line or as ``burler_app``, ``burler_exec`` and
``burler_config`` in pytest's own settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from burler.verify.in_tests import Case
    from burler.verify.result import Verification
    from burler.verify.subject import Subject

_OPTIONS = (
    ("app", "a burler tap whose rules become tests: a file, a module, module:attribute"),
    ("exec", "any tap's command whose rules become tests"),
    ("config", "the config file of --burler-app"),
    ("select", "rules that become tests: C,B302 (default: all)"),
    ("ignore", "rules that do not: H,B324"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("burler", "burler: the rules of Singer")
    for name, text in _OPTIONS:
        group.addoption(f"--burler-{name}", dest=f"burler_{name}", metavar=name.upper(), default=None, help=text)
        parser.addini(f"burler_{name}", text, default=None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the rules to what was collected."""
    app, command = _said(config, "app"), _said(config, "exec")
    if app is None and command is None:
        return
    rules = RulesOfTap.from_parent(session, name=str(app or "exec"))
    rules.prepare(app, command)
    items.extend(rules.collect())


def _said(config: pytest.Config, name: str) -> str | None:
    value = config.getoption(f"burler_{name}")
    found = value if value is not None else config.getini(f"burler_{name}")
    return str(found) if found else None


class RulesOfTap(pytest.Collector):
    """All rules of one tap. It is verified once, when it is collected: before that nobody knows its streams."""

    verification: Verification
    streams: list[str]

    def prepare(self, app: str | None, command: str | None) -> None:
        """Run the tap."""
        from burler.errors import BurlerError
        from burler.spec.choice import Choice, check_choice
        from burler.spec.table import RULES
        from burler.verify.baseline import read_baseline
        from burler.verify.options import Options
        from burler.verify.pyproject import find_project
        from burler.verify.verifying import verify

        words = {
            name: tuple((_said(self.config, name) or "").replace(",", " ").split()) for name in ("select", "ignore")
        }
        try:
            project = find_project(self.config.rootpath)
            known = None if project.baseline is None else read_baseline(project.baseline)
            ignored = (*project.choice.ignore, *words["ignore"])
            self.choice = Choice(words["select"] or project.choice.select, ignored, project.choice.per_stream)
            check_choice(self.choice, RULES)
            subject = _subject(app, command, _said(self.config, "config"))
            options = Options(
                choice=self.choice,
                limits=project.limits,
                max_records=project.max_records,
                max_seconds=project.max_seconds,
            )
            self.verification = verify(subject, options, baseline=known)
        except BurlerError as error:
            raise pytest.UsageError(f"burler: {error}") from None
        self.streams = sorted({name for run in self.verification.runs for name in run.streams})

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each rule and stream."""
        from burler.verify.in_tests import cases_of

        for case in cases_of(self.streams, self.choice, behaviour=True):
            item = RuleTest.from_parent(self, name=case.name)
            item.case = case
            yield item


def _subject(app: str | None, command: str | None, config: str | None) -> Subject:
    if app is not None and command is not None:
        raise pytest.UsageError("burler: --burler-app and --burler-exec are both given. Give one of them.")
    if command is not None:
        from burler.verify.program import Program
        from burler.verify.subject_program import ProgramSubject

        return ProgramSubject(Program.of_command(command))
    from burler.verify.subject_app import app_subject

    assert app is not None
    return app_subject(app, () if config is None else (config,))


class RuleTest(pytest.Item):
    """One rule of one stream."""

    case: Case

    def runtest(self) -> None:
        """Look at what the verification has found."""
        from burler.verify.in_tests import outcome_of

        rules = self.parent
        assert isinstance(rules, RulesOfTap)
        outcome, text = outcome_of(self.case, rules.verification, rules.streams)
        if outcome == "skipped":
            pytest.skip(text)
        if outcome == "failed":
            raise Broken(text)

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """The finding alone, without a way through our code."""
        return str(excinfo.value) if isinstance(excinfo.value, Broken) else str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """How it is shown."""
        return Path(str(self.parent.name if self.parent is not None else "")), None, self.name


class Broken(AssertionError):
    """A rule is broken."""
