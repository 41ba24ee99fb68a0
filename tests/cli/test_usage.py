"""Words of the command line that no command takes: one line, the cure, exit code 2."""

from __future__ import annotations

import pytest

from burler.cli.main import cli
from burler.cli.process import click_exit


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("run --selct a x.py", "No such option '--selct'. Did you mean '--select'? See: burler run --help"),
        ("lake check --strm a", "No such option '--strm'. Did you mean '--stream'? See: burler lake check --help"),
        ("lake chekc", "No such command 'chekc'. Did you mean: burler lake check? See: burler lake --help"),
        ("run x.py --limit abc", "Invalid value for '--limit': 'abc' is no whole number. See: burler run --help"),
        (
            "verify x.py --max-seconds a",
            "Invalid value for '--max-seconds': 'a' is no number. See: burler verify --help",
        ),
        (
            "run x.py --discover",
            "No such option '--discover'. Did you mean: burler discover APP? See: burler run --help",
        ),
        ("run", "Missing argument 'APP'. See: burler run --help"),
        ("run x.py --limit", "Option '--limit' requires an argument. See: burler run --help"),
        ("batch pack --level 9 --nosuch", "No such option '--nosuch'. See: burler batch pack --help"),
    ],
)
def test_what_is_said(args: str, said: str, caplog: pytest.LogCaptureFixture):
    assert click_exit(cli, args.split(), "burler") == 2
    assert [one.getMessage() for one in caplog.records] == [said]
