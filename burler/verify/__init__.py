"""Verify mode: proof that a tap keeps the rules (docs/verify.md).

What to open for what:

    verifying, options                a whole verification; what it is asked for
    given                             messages or a catalog alone, without a run
    subject, subject_*                what is verified: a tap in this process, or any command
    program                           a command as a process, watched and disturbed
    behaviour, behaviour_*            short runs: discovery, config, states, signals, selection
    requests_*                        what a tap asks its source
    result, facts, unlooked, outcome  what it gives; facts of runs; rules not looked at; what is told
    baseline, pyproject               findings that are known; ``[tool.burler.verify]``
    report, report_*                  text, page, JUnit, SARIF
    in_tests, ordering                the rules as tests; ``@ensure_ordering``
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.errors import OrderingError
    from burler.verify.given import verify_catalog, verify_messages
    from burler.verify.options import Options
    from burler.verify.ordering import ensure_ordering
    from burler.verify.program import Program
    from burler.verify.result import RunFacts, StreamFacts, Verification
    from burler.verify.subject_app import AppSubject, app_subject
    from burler.verify.subject_program import ProgramSubject
    from burler.verify.verifying import verify

__all__ = [
    "AppSubject",
    "Options",
    "OrderingError",
    "Program",
    "ProgramSubject",
    "RunFacts",
    "StreamFacts",
    "Verification",
    "app_subject",
    "ensure_ordering",
    "verify",
    "verify_catalog",
    "verify_messages",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "AppSubject": "subject_app",
            "Options": "options",
            "OrderingError": "ordering",
            "Program": "program",
            "ProgramSubject": "subject_program",
            "RunFacts": "result",
            "StreamFacts": "result",
            "Verification": "result",
            "app_subject": "subject_app",
            "ensure_ordering": "ordering",
            "verify": "verifying",
            "verify_catalog": "given",
            "verify_messages": "given",
        },
    )
