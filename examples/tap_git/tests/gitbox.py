"""A git repository made for a test, with fixed people and times."""

import os
import subprocess
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0100",
    "GIT_COMMITTER_NAME": "Cem",
    "GIT_COMMITTER_EMAIL": "cem@example.org",
    "GIT_COMMITTER_DATE": "1700000100 +0000",
}


class Git:
    """Runs git in one folder, with fixed people and times."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def __call__(self, *args, stdin=b"", **env):
        command = ["git", "-C", self.path, *args]
        out = subprocess.run(command, input=stdin, capture_output=True, env=ENV | env, check=False)
        assert out.returncode == 0, (args, out.stderr)
        return out.stdout.decode("utf-8", "surrogateescape").strip()

    def init(self, *options):
        self("init", "-q", "-b", "main", *options)
        return self

    def write(self, name, content):
        file = os.path.join(os.fsencode(self.path), os.fsencode(name))  # noqa: PTH118 (names that are bytes)
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
        Path(os.fsdecode(file)).write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message="m", files=None, **env):
        for name, content in (files or {}).items():
            self.write(name, content)
        self("add", "-A")
        self("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message, **env)
        return self("rev-parse", "HEAD")

    def object(self, kind, content):
        return self("hash-object", "-t", kind, "-w", "--stdin", "--literally", stdin=content)

    def merge(self, *names):
        self("merge", "-q", "--no-ff", "-m", "merge", *names)
        return self("rev-parse", "HEAD")

    def shas(self, *args):
        return set(self("rev-list", *args).split())
