"""Rules for all tests: no stream stays bound in the main context; in CI nothing is skipped in silence."""

from __future__ import annotations

import os

import pytest

from burler import context


@pytest.fixture(autouse=True)
def no_stream_stays_bound():
    """Fails a test that ends with a stream run bound in the main context (style 7.4 f)."""
    assert context._RUN.get(None) is None, "a stream run was bound before this test began"
    yield
    run = context._RUN.get(None)
    if run is not None:
        context._RUN.set(None)  # type: ignore[arg-type]
        pytest.fail(f"the test left {run!r} bound in the main context")


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
