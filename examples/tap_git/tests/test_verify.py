"""tap_git keeps the Singer rules: docs/verify.md."""

import tap_git
from burler.testing import verify_tap
from tap_git.tests.gitbox import Git


def test_it_keeps_the_rules(tmp_path):
    git = Git(tmp_path / "r").init()
    for number in range(6):
        day = f"{1_700_000_000 + number * 86_400} +0000"
        git.commit(f"no. {number}", {f"{number % 3}.txt": "a line\n" * number}, GIT_COMMITTER_DATE=day)
    git("tag", "v1")
    found = verify_tap(tap_git.tap, {"repo": str(git.path)})
    assert [one for one in found.findings if one.severity != "info"] == []
    assert {"C117", "B302", "B305", "B312", "B325"} <= set(found.checked)
    assert {name: stream.rows for name, stream in found.runs[0].streams.items()} == {
        "commits": 6, "file_changes": 6, "refs": 3, "authors": 1
    }  # fmt: skip
    assert {run.ended for run in found.runs} == {"succeeded"} and len(found.runs) >= 4
