"""How many bugs `burler verify` finds in a tap that has none but these: `python tests/verify/mutants/run.py --jobs 2`.

The correct tap must give no error and no warning. A bug counts as found by an error or a warning that the correct tap
does not have. It takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bugs import Bug
from judging import Verdict, place, verify
from mutate import BUGS, CORRECT, write

WANTED = 0.9


def show(verdict: Verdict) -> None:
    """All findings of a tap."""
    for one in verdict.findings:
        print(json.dumps(one, ensure_ascii=False))


def row(bug: Bug, verdict: Verdict, correct: Verdict) -> str:
    """A row of the table."""
    by = ", ".join(verdict.codes(correct)) if verdict.finds(correct) else f"NOT FOUND {verdict.problem}".strip()
    return f"| {bug.name} | {'subtle' if bug.subtle else ''} | {by} | {verdict.seconds:.1f} |"


def main() -> int:
    """Exit code: 0 if the correct tap is clean and enough bugs are found (all, where some are named)."""
    parser = argparse.ArgumentParser(description="How many bugs does burler verify find?")
    parser.add_argument("--only", action="append", choices=[bug.name for bug in BUGS], help="this bug; more than once")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="show all findings")
    flags = parser.parse_args()
    bugs = tuple(bug for bug in BUGS if not flags.only or bug.name in flags.only)
    with tempfile.TemporaryDirectory() as name, place(Path(name)) as config, ThreadPoolExecutor(flags.jobs) as pool:
        taps = write(Path(name), bugs)
        correct = verify(CORRECT, config)
        print(f"correct tap: exit code {correct.exit_code}, {sorted(correct.faults())} {correct.problem}", flush=True)
        if flags.show:
            show(correct)
        verdicts = pool.map(lambda bug: verify(taps[bug.name], config), bugs)
        print("\n| bug | | found by | seconds |\n|---|---|---|---|")
        score = 0
        for bug, verdict in zip(bugs, verdicts, strict=True):
            score += verdict.finds(correct)
            print(row(bug, verdict, correct), flush=True)
            if flags.show:
                show(verdict)
    print(f"\n{score} of {len(bugs)}")
    return 0 if correct.is_clean() and score >= (len(bugs) if flags.only else WANTED * len(bugs)) else 1


if __name__ == "__main__":
    sys.exit(main())
