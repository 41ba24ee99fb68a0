"""tap_git as its users run it: against repositories made here, compared with git itself and a golden file."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tap_git
from burler.errors import ConfigError
from burler.testing import run_tap, without_times
from tap_git.tests.gitbox import ENV, Git

HERE = Path(__file__).parent
GOLDEN = HERE / "expected.jsonl"


def run(git, state=None, **more):
    return run_tap(tap_git.tap, {"repo": str(git.path)}, state=state, **more)


def shas(tap_run):
    return [row["sha"] for row in tap_run.records("commits")]


def listed(git, *args):
    return git("rev-list", *(args or ("--all", "HEAD"))).split()


def story(path):
    """A small history with a bit of everything."""
    git = Git(path).init()
    git.commit("first", {"a.txt": "1\n2\n", "b.bin": b"\0\1"})
    git("switch", "-q", "-c", "side")
    git.commit("on the side\n\nwith a body", {"a.txt": "1\n2\n3\n", "ünïcode name": "x\n"})
    git("switch", "-q", "main")
    git("mv", "b.bin", "c.bin")
    git.commit("renamed", GIT_AUTHOR_NAME="Bo", GIT_AUTHOR_EMAIL="bo@example.org")
    git("merge", "-q", "--no-ff", "-m", "merged", "side", GIT_COMMITTER_DATE="1700000200 +0200")
    git("tag", "-a", "v1", "-m", "the first\n\nrelease", GIT_COMMITTER_DATE="1700000300 +0000")
    return git


def test_golden_output(tmp_path):
    """Every message of a run, byte for byte but for times and versions. Made anew with UPDATE_GOLDEN=1."""
    messages = without_times(run(story(tmp_path / "r")).messages)
    text = "".join(json.dumps(message, ensure_ascii=False, sort_keys=True) + "\n" for message in messages)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_counts_are_those_of_git(tmp_path):
    git = story(tmp_path / "r")
    out = run(git)
    assert sorted(shas(out)) == sorted(listed(git))
    numstat = [line for line in git("log", "--all", "--numstat", "--format=").splitlines() if line]
    assert len(out.records("file_changes")) == len(numstat) == 5
    assert len(out.records("refs")) == len(git("for-each-ref").splitlines()) + 1  # and HEAD
    assert {row["name"]: row["commits"] for row in out.records("authors")} == {"Ann": 3, "Bo": 1}


def test_second_run_moves_exactly_the_new_commits(tmp_path):
    git = story(tmp_path / "r")
    first = run(git)
    again = run(git, first.states[-1])
    assert shas(again) == [] and again.records("file_changes") == []
    assert len(again.records("refs")) == len(first.records("refs"))
    new = {git.commit("same second as all others", {"n": "1"}), git.commit("one more", {"n": "2"})}
    third = run(git, again.states[-1])
    assert set(shas(third)) == new and len(shas(third)) == 2
    assert {row["sha"] for row in third.records("file_changes")} == new


def test_old_branch_that_appears_late_is_neither_lost_nor_repeated(tmp_path):
    git = story(tmp_path / "r")
    state = run(git).states[-1]
    early = git("commit-tree", "HEAD^{tree}", "-m", "older than everything", GIT_COMMITTER_DATE="1000000000 +0000")
    git("update-ref", "refs/heads/late", early)
    second = run(git, state)
    assert shas(second) == [early]
    git("merge", "-q", "--allow-unrelated-histories", "-m", "late merge", "late")
    third = run(git, second.states[-1])
    assert shas(third) == [git("rev-parse", "HEAD")]


def test_stopped_after_any_row_it_loses_nothing_and_repeats_one_page_at_most(tmp_path, monkeypatch):
    """The function fails after every possible number of rows; both streams are whole after the next run."""
    git = Git(tmp_path / "r").init()
    for n in range(9):
        git.commit(f"c{n}", {"f": str(n), "g": str(n)})
        if n % 4 == 3:
            git("switch", "-q", "-c", f"b{n}", "HEAD~1")
    everything = set(listed(git))
    changes = {(row["sha"], row["path"]) for row in run(git).records("file_changes")}
    real = tap_git.gitrepo.Repo.commits
    for page in (1, 3):
        for stop in range(1, len(everything)):

            def broken(self, *args, stop=stop, **more):
                yield from itertools.islice(real(self, *args, **more), stop)
                raise OSError("git died")

            config = {"repo": str(git.path), "page_max_rows": page}
            monkeypatch.setattr(tap_git.gitrepo.Repo, "commits", broken)
            first = run_tap(tap_git.tap, config)
            monkeypatch.setattr(tap_git.gitrepo.Repo, "commits", real)
            assert "commits" in first.result.errors
            second = run_tap(tap_git.tap, config, state=first.states[-1])
            both = [*shas(first), *shas(second)]
            assert set(both) == everything
            assert len(both) - len(everything) <= page
            out = [*first.records("file_changes"), *second.records("file_changes")]
            assert {(row["sha"], row["path"]) for row in out} == changes


def test_stream_selected_later_gets_its_past(tmp_path):
    git = story(tmp_path / "r")
    state = run(git, select="commits").states[-1]
    out = run(git, state)
    assert len(out.records("file_changes")) == 5
    only = run(git, out.states[-1], select="file_changes")
    assert only.records("commits") == [] and only.records("file_changes") == []
    git.commit("while commits were off", {"z": "1"})
    off = run(git, only.states[-1], select="file_changes")
    assert len(off.records("file_changes")) == 1
    back = run(git, off.states[-1])
    assert set(shas(back)) == set(listed(git))


def state_of_1_0(tips, streams, shallow=()):
    """A state as version 1.0 of this tap wrote it, when one function gave commits and file changes."""
    position = {"tips": tips, "streams": list(streams), "shallow": list(shallow)}
    return {"bookmarks": {"commits": {"committed_at": "2023-11-14T22:16:40Z", "stream_state": position}}}


BOTH = ("commits", "file_changes")


@pytest.mark.parametrize("wanted", [BOTH, BOTH[:1], BOTH[1:]])
def test_state_of_version_1_0_goes_on_without_loss_or_repeats(tmp_path, wanted):
    git = story(tmp_path / "r")
    state = state_of_1_0({sha: ref for ref, sha in tap_git.Repo(git.path).tips().items()}, wanted)
    first = run(git, state, select=",".join(wanted))
    assert not first.result.errors
    assert shas(first) == [] and first.records("file_changes") == []
    new = git.commit("new", {"n": "1"})
    second = run(git, first.states[-1], select=",".join(wanted))
    assert shas(second) == [new] * ("commits" in wanted)
    assert [row["sha"] for row in second.records("file_changes")] == [new] * ("file_changes" in wanted)
    third = run(git, second.states[-1], select=",".join(wanted))
    assert shas(third) == [] and third.records("file_changes") == []


def test_interrupted_state_of_version_1_0_goes_on(tmp_path):
    git = story(tmp_path / "r")
    root = git("rev-list", "--max-parents=0", "HEAD")
    out = run(git, state_of_1_0({root: None}, BOTH))
    assert set(shas(out)) == set(listed(git)) - {root}
    assert {row["sha"] for row in out.records("file_changes")} == set(shas(out)) - {git("rev-parse", "HEAD")}


@pytest.mark.parametrize("had", [BOTH[:1], BOTH[1:]])
def test_state_of_version_1_0_of_fewer_streams_than_are_wanted_gets_the_past(tmp_path, had):
    git = story(tmp_path / "r")
    state = state_of_1_0({sha: ref for ref, sha in tap_git.Repo(git.path).tips().items()}, had)
    out = run(git, state)
    assert set(shas(out)) == set(listed(git)) and len(out.records("file_changes")) == 5
    assert shas(run(git, out.states[-1])) == []


def test_state_of_version_1_0_that_one_stream_has_left_is_not_taken_for_the_other(tmp_path):
    """Commits alone went on from it; so it does not say any more where the file changes are."""
    git = story(tmp_path / "r")
    state = state_of_1_0({sha: ref for ref, sha in tap_git.Repo(git.path).tips().items()}, BOTH)
    new = git.commit("new", {"n": "1"})
    commits = run(git, state, select="commits")
    assert shas(commits) == [new]
    both = run(git, commits.states[-1])
    assert new in {row["sha"] for row in both.records("file_changes")}


def test_however_far_commits_are_read_ahead_all_changes_come(tmp_path, monkeypatch):
    """Parents read ahead, changes that are kept or asked for again: the rows are the same, and so is their order."""
    git = Git(tmp_path / "r").init()
    for n in range(30):
        git.commit(f"c{n}", {"f": str(n), "g": str(n), f"h{n}": "1\n" * n})
    expected = [row for row in run(git).messages if row["type"] == "RECORD"]
    for ahead, kept in ((1, 20_000), (100, 20_000), (100, 1), (7, 12)):
        monkeypatch.setattr(tap_git.changes.Changes.__init__, "__defaults__", (kept,))
        out = run_tap(tap_git.tap, {"repo": str(git.path), "parent_buffer_rows": ahead})
        for name in ("commits", "file_changes"):
            assert out.records(name) == [row["record"] for row in expected if row["stream"] == name], (ahead, kept)
        assert len(out.records("file_changes")) == 90


@pytest.mark.parametrize("kept", [20_000, 1])
def test_git_is_started_a_few_times_however_many_commits_there_are(tmp_path, monkeypatch, kept):
    git = Git(tmp_path / "r").init()
    for n in range(40):
        git.commit(f"c{n}", {"f": str(n), "g": str(n)})
    started = []
    real = tap_git.gitrun.Popen
    monkeypatch.setattr(tap_git.gitrun, "Popen", lambda *args, **more: started.append(args[0]) or real(*args, **more))
    monkeypatch.setattr(tap_git.changes.Changes.__init__, "__defaults__", (kept,))
    out = run(git, select="commits,file_changes")
    assert len(out.records("file_changes")) == 80
    assert len(started) < 15
    assert sum("diff-tree" in command for command in started) == (kept == 1)


def test_no_trees_are_compared_where_nobody_wants_what_that_tells(tmp_path):
    git = Git(tmp_path / "r").init()
    for n in range(3):
        sha = git.commit(f"c{n}", {"f": str(n)})
    tree = git("rev-parse", f"{sha}^{{tree}}")
    (git.path / ".git/objects" / tree[:2] / tree[2:]).unlink()  # whoever compares fails
    figures = "!commits.files_changed,!commits.lines_added,!commits.lines_removed"
    out = run(git, select=f"commits,{figures}")
    assert not out.result.errors and len(shas(out)) == 3
    for select in (
        "commits",
        f"commits,{figures},commits.lines_added",
        "file_changes",
        f"commits,file_changes,{figures}",
    ):
        assert run(git, select=select).result.errors, select


def test_changes_that_can_not_be_had_are_reported_and_come_later(tmp_path, monkeypatch):
    git = Git(tmp_path / "r").init()
    made = [git.commit(f"c{n}", {"f": str(n)}) for n in range(9)]
    real = tap_git.gitrepo.Repo.changes

    def broken(self, sha):
        if sha == made[4]:
            raise tap_git.GitError("no luck")
        return real(self, sha)

    monkeypatch.setattr(tap_git.gitrepo.Repo, "changes", broken)
    first = run(git, select="commits,file_changes")
    assert set(first.result.errors) == {"file_changes"}
    assert shas(first) == made
    assert [row["sha"] for row in first.records("file_changes")] == made[:4] + made[5:]
    monkeypatch.setattr(tap_git.gitrepo.Repo, "changes", real)
    second = run(git, first.states[-1])
    assert not second.result.errors
    assert made[4] in {row["sha"] for row in second.records("file_changes")}
    assert run(git, second.states[-1]).records("file_changes") == []


def test_killed_and_resumed_neither_stream_lacks_a_row(tmp_path):
    """SIGKILL once so many lines were read; a run from the last whole STATE among them brings the rest."""
    git = Git(tmp_path / "r").init()
    history = "".join(
        f"commit refs/heads/b{n % 3}\nmark :{n}\ncommitter C <c@example.org> {1700000000 + n // 9} +0000\n"
        f"data 1\nx\n"
        + (f"from :{n - 3}\n" if n > 3 else "")
        + "".join(f"M 644 inline {path}{n % 5}\ndata {len(str(n))}\n{n}\n" for path in "ab")
        for n in range(1, 1001)
    )
    git("fast-import", "--quiet", stdin=history.encode())
    whole = run(git, select="commits,file_changes")
    command = [sys.executable, "-m", "burler", "run", str(Path(tap_git.__file__).parent)]
    environment = {**ENV, "TAP_GIT_REPO": str(git.path)}
    for lines in (1, 999, 2222):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as child:
            got = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            got += child.stdout.read().splitlines(keepends=True)
        messages = [json.loads(line) for line in got if line.endswith(b"\n")]
        states = [message["value"] for message in messages if message["type"] == "STATE"]
        second = run(git, states[-1] if states else None)
        for name, keys in (("commits", ["sha"]), ("file_changes", ["sha", "path"])):
            first = [m["record"] for m in messages if m["type"] == "RECORD" and m["stream"] == name]
            both = {tuple(row[key] for key in keys): row for row in [*first, *second.records(name)]}
            assert both == {tuple(row[key] for key in keys): row for row in whole.records(name)}
        assert len(second.records("commits")) < 1000 if states else lines < 1500


def test_versions_of_the_full_tables(tmp_path):
    git = story(tmp_path / "r")
    first, second = run(git), None
    order = [(m["type"], m.get("stream")) for m in first.messages if m.get("stream") == "refs"]
    assert order[:2] == [("SCHEMA", "refs"), ("ACTIVATE_VERSION", "refs")] and order[-1][0] == "ACTIVATE_VERSION"
    second = run(git, first.states[-1])
    kinds = [m["type"] for m in second.messages if m.get("stream") == "refs"]
    assert kinds[0] == "SCHEMA" and kinds[1] == "RECORD" and kinds[-1] == "ACTIVATE_VERSION"
    versions = [s["bookmarks"]["refs"]["version"] for s in (first.states[-1], second.states[-1])]
    assert versions[0] < versions[1]


def test_odd_text(tmp_path):
    git = Git(tmp_path / "r").init()
    git.commit("m", {b"caf\xe9": "latin path", 'quote"\ttab\n': "x"}, GIT_AUTHOR_NAME=b"Ren\xe9e".decode("latin-1"))
    raw = b"tree " + git("rev-parse", "HEAD^{tree}").encode()
    raw += b"\nauthor Ren\xe9e <r@example.org> 1 +0000\ncommitter C <c@example.org> -5 +9999\n\nna\xefve\n"
    sha = git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)
    git("update-ref", "refs/heads/odd", sha)
    out = run(git)
    assert not out.result.errors
    paths = {row["path"] for row in out.records("file_changes")}
    assert '"caf\\351"' in paths and 'quote"\ttab\n' in paths
    odd = next(row for row in out.records("commits") if row["sha"] == sha)
    assert odd["author_name"] == "Renée" and odd["subject"] == "naïve"


def test_empty_repository(tmp_path):
    git = Git(tmp_path / "r").init()
    out = run(git)
    assert not out.result.errors and out.types.count("RECORD") == 0
    assert [m["stream"] for m in out.messages if m["type"] == "SCHEMA"] == [
        "commits",
        "file_changes",
        "refs",
        "authors",
    ]
    sha = git.commit("first at last", {"a": "1"})
    assert shas(run(git, out.states[-1])) == [sha]


def test_shallow_clone_that_is_deepened_gets_its_past(tmp_path):
    origin = Git(tmp_path / "origin").init()
    for n in range(6):
        origin.commit(f"c{n}", {"f": f"{n}\n"})
    origin("clone", "-q", "--depth=2", f"file://{origin.path}", str(tmp_path / "clone"))
    clone = Git(tmp_path / "clone")
    first = run(clone)
    assert len(shas(first)) == 2
    clone("fetch", "-q", "--unshallow")
    second = run(clone, first.states[-1])
    assert set(shas(first)) | set(shas(second)) == set(listed(origin))
    third = run(clone, second.states[-1])
    assert shas(third) == []


def test_force_push_and_gc(tmp_path):
    git = story(tmp_path / "r")
    state = run(git).states[-1]
    git("reset", "-q", "--hard", "HEAD~1")
    git("tag", "-d", "v1")
    git("branch", "-q", "-D", "side")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    new = git.commit("rewritten", {"q": "1"})
    out = run(git, state)
    assert not out.result.errors and new in shas(out)


def test_no_repository_is_one_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="not a git repository"):
        run_tap(tap_git.tap, {"repo": str(tmp_path)})


@pytest.mark.nightly
def test_terminated_in_the_middle_and_resumed(tmp_path):
    """A real process, a real SIGTERM while the pipe is full; then a run from its last STATE. At night: it is the killed
    run above, ended in a gentler way."""
    git = Git(tmp_path / "r").init()
    body = "x" * 3000
    stream = "".join(
        f"commit refs/heads/main\nmark :{n}\ncommitter C <c@example.org> {1700000000 + n // 9} +0000\n"
        f"data {len(body) + len(str(n))}\n{body}{n}\n" + (f"from :{n - 1}\n" if n > 1 else "")
        for n in range(1, 6001)
    )
    git("fast-import", "--quiet", stdin=stream.encode())
    environment = {**ENV, "TAP_GIT_REPO": str(git.path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "burler", "run", str(Path(tap_git.__file__).parent), "--select", "commits"]
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as child,
    ):
        lines = [child.stdout.readline() for _ in range(2500)]
        child.send_signal(signal.SIGTERM)
        lines += child.stdout.read().splitlines(keepends=True)
    assert child.returncode == 0, log.read_text()
    messages = [json.loads(line) for line in lines]
    first = [m["record"]["sha"] for m in messages if m["type"] == "RECORD"]
    assert 2000 < len(first) < 6000 and messages[-1]["type"] == "STATE"
    second = shas(run(git, messages[-1]["value"], select="commits"))
    assert set(first) | set(second) == set(listed(git))
    assert len(first) + len(second) - 6000 <= 1000  # at most one page again


def test_singer_python_reads_every_message(tmp_path):
    git = story(tmp_path / "r")
    command = [sys.executable, "-m", "burler", "run", str(Path(tap_git.__file__).parent)]
    environment = {**ENV, "TAP_GIT_REPO": str(git.path)}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    lines = done.stdout.decode().splitlines()
    read = (
        "import sys, singer, collections; "
        "print(dict(collections.Counter(type(singer.parse_message(l)).__name__ for l in sys.stdin)))"
    )
    told = subprocess.run([sys.executable, "-c", read], input=done.stdout, capture_output=True, check=True)
    counted = eval(told.stdout)
    assert counted["RecordMessage"] == sum('"type":"RECORD"' in line for line in lines) == 15
    assert counted["SchemaMessage"] == 4 and counted["ActivateVersionMessage"] == 4
