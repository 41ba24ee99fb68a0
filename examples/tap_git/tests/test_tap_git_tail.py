"""tap_git as a tail: a repository that gets commits, rewritten history, branches and tags while the tap runs."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import tap_git
from burler.testing import FakeClock, run_tap
from tap_git.tests.gitbox import ENV, Git

HERE = str(Path(tap_git.__file__).parent)
TAIL = {"tail": True, "new_record_polling_interval_ms": 10_000, "state_message_min_interval_ms": 30_000}
STREAMS = {"commits": ["sha"], "file_changes": ["sha", "path"]}


class Acting(FakeClock):
    """A clock that does one thing between two polls each."""

    def __init__(self, actions):
        super().__init__()
        self.actions = [(5 + 10 * n, action) for n, action in enumerate(actions)]

    def wait(self, changed, seconds):
        super().wait(changed, seconds)
        while self.actions and self.actions[0][0] <= self.monotonic():
            self.actions.pop(0)[1]()


def tail(git, actions, **config):
    """A tail with a poll after each action, and one more."""
    settings = {**TAIL, "repo": str(git.path), "tail_max_seconds": 10 * len(actions) + 9, **config}
    out = run_tap(tap_git.tap, settings, clock=Acting(actions))
    assert out.result.exit_code == 0, out.result.errors
    return out


def keys(out, name):
    return [tuple(row[key] for key in STREAMS[name]) for row in out.records(name)]


def assert_whole(git, out):
    """Of all that the refs reach now, each row is out, and none came twice."""
    whole = run_tap(tap_git.tap, {"repo": str(git.path)})
    for name in STREAMS:
        counted = Counter(keys(out, name))
        assert set(counted) >= set(keys(whole, name))
        assert [key for key, times in counted.items() if times > 1] == []


def test_commits_that_come_while_it_runs(tmp_path):
    git = Git(tmp_path / "r").init()
    first = git.commit("first", {"a": "1"})
    out = tail(git, [lambda n=n: git.commit(f"c{n}", {"a": str(n), f"f{n}": "x"}) for n in range(2, 8)])
    assert out.records("commits")[0]["sha"] == first
    assert [row["subject"] for row in out.records("commits")] == ["first", *(f"c{n}" for n in range(2, 8))]
    assert len(out.records("file_changes")) == 1 + 6 * 2
    assert_whole(git, out)
    assert 2 <= len(out.states) <= 4  # each 30 seconds of a minute
    # A plain run goes on where the tail has ended.
    assert run_tap(tap_git.tap, {"repo": str(git.path)}, state=out.states[-1]).records("commits") == []


def test_history_that_is_rewritten_and_branches_that_come_late(tmp_path):
    """What was amended or thrown away is out if it was seen; it is not taken back. What is there now is out once."""
    git = Git(tmp_path / "r").init()
    git.commit("first", {"a": "1"})
    seen = []

    def amend():
        seen.append(git("rev-parse", "HEAD"))
        git("commit", "-q", "--amend", "-m", "amended")

    def replace():
        git("reset", "-q", "--hard", "HEAD~1")
        git.commit("in its place", {"c": "3"})

    def old_branch():
        root = git("rev-list", "--max-parents=0", "HEAD")
        git("switch", "-q", "-c", "late", root)
        git.commit("older than all", {"d": "4"}, GIT_COMMITTER_DATE="1600000000 +0000")
        git("switch", "-q", "main")

    def new_root():
        git("switch", "-q", "--orphan", "other")
        git.commit("another beginning", {"z": "1"})
        git("switch", "-q", "main")

    actions = [
        lambda: git.commit("second", {"b": "2"}),
        amend,
        lambda: git.commit("third", {"b": "3"}),
        replace,
        old_branch,
        lambda: git.merge("late"),
        new_root,
        lambda: git("branch", "-D", "other"),
        lambda: git("tag", "-a", "v1", "-m", "one"),
    ]
    out = tail(git, actions)
    assert_whole(git, out)
    subjects = [row["subject"] for row in out.records("commits")]
    assert subjects == [
        *("first", "second", "amended", "third", "in its place", "older than all", "merge", "another beginning")
    ]
    assert seen[0] in {row["sha"] for row in out.records("commits")}


def test_history_that_is_gone_for_good(tmp_path):
    """Once git has removed all that the position names, nothing says what was out before: all that is there comes
    again, once."""
    git = Git(tmp_path / "r").init()
    git.commit("first", {"a": "1"})

    def forget():
        git("commit", "-q", "--amend", "-m", "in its place")
        git("reflog", "expire", "--expire=now", "--all")
        git("gc", "-q", "--prune=now")

    out = tail(git, [lambda: git.commit("second", {"b": "2"}), forget, lambda: git.commit("third", {"b": "3"})])
    subjects = [row["subject"] for row in out.records("commits")]
    assert subjects == ["first", "second", "first", "in its place", "third"]


def test_refs_and_authors_come_again_when_they_are_old(tmp_path):
    """Full tables: with an age, each reading is a version of its own, which takes a branch away that is gone."""
    git = Git(tmp_path / "r").init()
    git.commit("first", {"a": "1"})
    actions = [
        lambda: git("branch", "side"),
        lambda: git("branch", "-D", "side"),
        lambda: git.commit("m", GIT_AUTHOR_NAME="Bo"),
    ]
    out = tail(git, actions, max_full_table_age_seconds=10)
    tables = {}
    for message in out.messages:
        if message["type"] == "RECORD" and message["stream"] == "refs":
            tables.setdefault(message["version"], []).append(message["record"]["name"])
    assert list(tables) == sorted(tables)
    readings = list(tables.values())
    assert readings[0] == readings[-1] == ["HEAD", "refs/heads/main"]
    assert ["HEAD", "refs/heads/main", "refs/heads/side"] in readings
    assert {row["name"] for row in out.records("authors")[-2:]} == {"Ann", "Bo"}


# ---- a process, with signals ---------------------------------------------------------------------------


class Live:
    """A tail as a process; its lines are read as they come."""

    def __init__(self, git, folder, state=None):
        path = folder / "state.json"
        path.write_text(json.dumps(state or {}))
        flags = ["--tail", "--new-record-polling-interval-ms", "40", "--state-message-min-interval-ms", "100"]
        command = [sys.executable, "-m", "burler", "run", HERE, "--state", str(path), *flags]
        environment = {**ENV, "TAP_GIT_REPO": str(git.path), "HOME": str(folder)}
        self.log = folder / "log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def messages(self):
        """The whole lines so far; what SIGKILL has torn is none."""
        return [json.loads(line) for line in list(self.lines) if line.endswith(b"\n")]

    def rows(self, name):
        found = [m["record"] for m in self.messages() if m["type"] == "RECORD" and m["stream"] == name]
        return [tuple(row[key] for key in STREAMS[name]) for row in found]

    def wait_for(self, sha):
        self.wait_until(lambda: (sha,) in self.rows("commits"), sha)

    def wait_until(self, is_true, what):
        limit = time.monotonic() + 60
        while not is_true():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < limit, f"a minute, and not yet: {what}"
            time.sleep(0.005)

    def end(self, number):
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join(30)
        self.process.stdout.close()
        return code


@contextmanager
def live(git, folder, state=None):
    one = Live(git, folder, state)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait(30)


def states(one):
    return [m["value"] for m in one.messages() if m["type"] == "STATE"]


def test_a_commit_is_on_the_pipe_and_sigterm_ends_it_with_a_state(tmp_path):
    git = Git(tmp_path / "r").init()
    first = git.commit("first", {"a": "1"})
    with live(git, tmp_path) as one:
        one.wait_for(first)
        for n in range(3):
            one.wait_for(git.commit(f"c{n}", {"a": str(n)}))
        assert one.end(signal.SIGTERM) == 0
        assert one.messages()[-1]["type"] == "STATE"
        assert one.lines[-1].endswith(b"\n")
    assert run_tap(tap_git.tap, {"repo": str(git.path)}, state=states(one)[-1]).records("commits") == []


def import_many(git, branch, count=2500):
    """Many commits at once: more than a STATE comes after."""
    commits = (
        f"commit refs/heads/{branch}\nmark :{n}\ncommitter C <c@example.org> {1700000000 + n} +0000\n"
        f"data 1\nx\n" + (f"from :{n - 1}\n" if n > 1 else "") + f"M 644 inline a\ndata {len(str(n))}\n{n}\n"
        for n in range(1, count + 1)
    )
    git("fast-import", "--quiet", stdin="".join(commits).replace("data 1\nx", f"data {len(branch)}\n{branch}").encode())


def test_killed_again_and_again_while_commits_come_nothing_is_missing(tmp_path):
    git = Git(tmp_path / "r").init()
    git.commit("first", {"a": "1"})
    chance, over = random.Random(3), threading.Event()

    def working():
        n = 0
        while not over.wait(0.02):
            n += 1
            git.commit(f"c{n}", {f"f{n % 5}": str(n), "same": str(n)})

    worker = threading.Thread(target=working)
    worker.start()
    found, state = {name: set() for name in STREAMS}, None
    try:
        for _ in range(2):
            with live(git, tmp_path, state) as one:
                one.wait_for(git("rev-parse", "HEAD"))
                begun = len(one.lines)
                import_many(git, f"many{chance.random()}")
                most = begun + chance.randint(2200, 4500)
                one.wait_until(lambda one=one, most=most: len(one.lines) > most, "half of them")
                one.end(signal.SIGKILL)
                state = (states(one) or [state])[-1]
                for name in STREAMS:
                    found[name] |= set(one.rows(name))
    finally:
        over.set()
        worker.join()
    assert state
    with live(git, tmp_path, state) as one:
        last = git.commit("last", {"a": "2"})
        one.wait_for(last)
        assert one.end(signal.SIGTERM) == 0
        for name in STREAMS:
            found[name] |= set(one.rows(name))
    whole = run_tap(tap_git.tap, {"repo": str(git.path)})
    rest = run_tap(tap_git.tap, {"repo": str(git.path)}, state=states(one)[-1])
    for name in STREAMS:
        assert found[name] | set(keys(rest, name)) == set(keys(whole, name))


def test_the_commands_of_the_readme(tmp_path):
    folder = Path(HERE)
    text = (folder / "README.md").read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(folder.parent)
    (tmp_path / "burler").write_text(f'#!/bin/sh\nexec {sys.executable} -m burler "$@"\n')
    (tmp_path / "burler").chmod(0o755)
    Git(tmp_path).init().commit("first", {"a": "1"})
    lines = re.findall("^    (.+)$", text, re.MULTILINE)
    # In place of a time that is long enough on this machine.
    patience = "for _ in $(seq 600); do grep -q 'while it runs' history.jsonl && break; sleep 0.1; done"
    script = "\n".join(lines).replace("sleep 3", patience)
    assert patience in script
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        env={**ENV, "PATH": f"{tmp_path}:{ENV['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == '"subject":"while it runs"\n'
    assert (tmp_path / "history.jsonl").read_text().splitlines()[-1].startswith('{"type":"STATE"')
