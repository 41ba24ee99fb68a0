"""The file changes of commits that are asked for later, in any order: what `git log` said as the commits went by."""

import os
import signal
import threading

import pytest

from tap_git.changes import Changes
from tap_git.gitrepo import GitError, Repo
from tap_git.gitrun import Git as Runner
from tap_git.tests.gitbox import Git
from tap_git.tests.test_gitrepo import HOSTILE, children


@pytest.fixture
def git(tmp_path):
    return Git(tmp_path / "repo").init()


@pytest.fixture
def opened():
    """Open repositories; they are closed when the test ends, however it ends."""
    repos = []

    def at(path):
        repos.append(Repo(path))
        return repos[-1]

    yield at
    for repo in repos:
        repo.close()
    assert children() == []


def tell(repo, **options):
    return repo.commits(repo.tips().values(), **options)


def rich(git):
    """A history with each kind of change, merges, a root, an empty commit; its shas."""
    shas = [git.commit("root", {"keep": "1\n" * 50, "move": "2\n" * 50, "gone": "g\n", "link": "l\n", "empty": ""})]
    git("switch", "-q", "-c", "side")
    shas.append(git.commit("side", {"s": "1\n", "b.bin": b"\0\1"}))
    git("switch", "-q", "main")
    (git.path / "to").mkdir()
    git("mv", "move", "to/here")
    (git.path / "gone").unlink()
    (git.path / "keep").chmod(0o755)
    (git.path / "link").unlink()
    (git.path / "link").symlink_to("keep")
    shas.append(git.commit("kinds", {"to/here": "2\n" * 50 + "3\n", "empty.2": ""}))
    shas.append(git.commit("nothing"))
    odd = {b"caf\xe9": "1\n", 'quote"\ttab\nline': "2\n", ":c": "3\n", ">g": "4\n", "1\t1\tx": "5\n"}
    shas.append(git.commit("odd", odd))
    for name in odd:
        raw = name if isinstance(name, bytes) else name.encode()
        git("mv", "--", name, raw + b".2")
    shas.append(git.commit("odd ones moved"))
    git("update-index", "--add", "--cacheinfo", "160000", "1" * 40, "sub")
    git("commit", "-q", "-m", "gitlink")
    shas.append(git("rev-parse", "HEAD"))
    shas.append(git.merge("side"))
    return shas


def test_asked_late_backwards_and_twice_they_are_the_same(git, opened):
    shas = rich(git)
    repo = opened(git.path)
    at_once = {row["sha"]: repo.changes(row["sha"]) for row in tell(repo)}
    assert set(at_once) == set(shas) and children() == []  # nobody had to ask git
    later = {sha: repo.changes(sha) for sha in reversed(shas)}
    assert later == at_once
    assert sum(map(len, later.values())) == len(git("log", "--all", "--raw", "--format=").splitlines())
    assert {row["status"] for rows in later.values() for row in rows} >= set("AMDRT")
    assert repo.changes(shas[0]) == at_once[shas[0]]  # once more
    assert len(children()) == 1  # one git for all of them
    repo.close()
    assert children() == []
    assert repo.changes(shas[2]) == at_once[shas[2]]  # a closed one begins anew


def test_settings_of_the_user_change_nothing_when_git_is_asked_either(git, tmp_path, monkeypatch, opened):
    shas = rich(git)
    repo = opened(git.path)
    expected = {sha: repo.changes(sha) for sha in shas}
    repo.close()
    (tmp_path / "attributes").write_text("* binary\n")
    (tmp_path / "config").write_text(HOSTILE.format(attributes=tmp_path / "attributes"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    git("config", "include.path", str(tmp_path / "config"))
    (git.path / ".gitmodules").write_text('[submodule "sub"]\n path = sub\n url = ./sub\n ignore = all\n')
    (git.path / "to").mkdir(exist_ok=True)
    repo = opened(git.path / "to")  # diff.relative
    assert {sha: repo.changes(sha) for sha in shas} == expected


def test_all_commits_read_ahead_then_their_changes(git, opened):
    """More than is kept: the first ones come from git, the last ones out of memory, none is missing or double."""
    shas = [git.commit(str(n), {f"f{i}": f"{n}\n" for i in range(10)}) for n in range(12)]
    repo = opened(git.path)
    expected = {sha: repo.changes(sha) for sha in shas}
    repo.close()
    for most in (1, 11, 25, 60, 1000):
        repo._changes = Changes(Runner(git.path), most)
        assert [row["sha"] for row in tell(repo)] == shas
        assert repo._changes._rows <= max(most, 11)
        assert {sha: repo.changes(sha) for sha in shas} == expected
        assert repo._changes._rows == 0 or most < 1000
        assert len(children()) == (most < 1000)
        repo.close()


def test_what_nobody_asks_for_does_not_pile_up(git, opened):
    for n in range(30):
        git.commit(str(n), {"f": f"{n}\n"})
    repo = opened(git.path)
    repo._changes = Changes(Runner(git.path), 8)
    for _ in tell(repo):
        assert repo._changes._rows <= 8
    assert len(repo._changes._kept) == 4
    list(tell(repo, changes=False))
    assert repo._changes._kept == {}


def test_boundary_of_a_shallow_clone_has_none_when_git_is_asked_either(git, tmp_path, opened):
    for n in range(4):
        git.commit(str(n), {"f": f"{n}\n", f"g{n}": "1\n"})
    clone = Git(tmp_path / "clone")
    clone("clone", "-q", "--depth", "2", f"file://{git.path}", ".")
    repo = opened(clone.path)
    repo._changes = Changes(Runner(clone.path), 1)
    shas = [row["sha"] for row in tell(repo)]
    assert [len(repo.changes(sha)) for sha in shas] == [0, 2]


def test_sha256(tmp_path, opened):
    git = Git(tmp_path / "r").init("--object-format=sha256")
    sha = git.commit("1", {"f": "1\n"})
    repo = opened(git.path)
    assert [row["path"] for row in repo.changes(sha)] == ["f"]


def test_no_commit_is_an_error_and_the_next_one_is_answered(git, opened):
    sha = git.commit("1", {"f": "1\n"})
    repo = opened(git.path)
    for wrong in ("1" * 40, git("rev-parse", "HEAD^{tree}"), "rubbish", ""):
        with pytest.raises(GitError, match="missing or no commit"):
            repo.changes(wrong)
        assert children() == []
        assert len(repo.changes(sha)) == 1


def test_damage_is_an_error_with_gits_words(git, opened):
    shas = [git.commit(str(n), {"f": f"{n}\n"}) for n in range(2)]
    tree = git("rev-parse", f"{shas[1]}^{{tree}}")
    (git.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    repo = opened(git.path)
    assert len(repo.changes(shas[0])) == 1
    with pytest.raises(GitError, match=rf"(?s)git diff-tree in .*{tree}.*git fsck"):
        repo.changes(shas[1])
    assert children() == []
    assert len(repo.changes(shas[0])) == 1


def test_git_killed_between_two_questions(git, opened):
    shas = [git.commit(str(n), {"f": f"{n}\n"}) for n in range(2)]
    repo = opened(git.path)
    repo.changes(shas[0])
    pid = int(children()[0])
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(GitError, match="ended with code -9"):
        repo.changes(shas[1])
    assert children() == []
    assert len(repo.changes(shas[1])) == 1


def test_a_signal_in_the_middle_of_an_answer_mixes_no_answers(git, monkeypatch, opened):
    """A handler that raises while git is being read: the next question gets its own answer."""
    shas = [git.commit(str(n), {f"f{n}": f"{n}\n"}) for n in range(2)]
    repo = opened(git.path)
    repo.changes(shas[0])

    class Stop(BaseException):
        pass

    def stop(number, frame):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    real = type(repo._changes._asked)._answer

    def slow(self):
        signal.alarm(1)
        threading.Event().wait()  # until the signal comes

    try:
        monkeypatch.setattr(type(repo._changes._asked), "_answer", slow)
        with pytest.raises(Stop):
            repo.changes(shas[0])
        monkeypatch.setattr("tap_git.changes._DiffTree._answer", real)
        assert [row["path"] for row in repo.changes(shas[1])] == ["f1"]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_huge_commit(tmp_path, opened):
    """More output than a pipe holds, for a question that is answered in one piece."""
    git = Git(tmp_path / "r").init("--bare")
    files = "".join(f"M 644 inline some/long/path/to/file-{n}\ndata 2\n{n % 10}\n\n" for n in range(10_000))
    git("fast-import", "--quiet", stdin=f"commit refs/heads/main\ncommitter C <c> 1 +0000\ndata 0\n{files}".encode())
    repo = opened(git.path)
    (row,) = tell(repo)
    kept = repo.changes(row["sha"])
    assert row["files_changed"] == len(kept) == 10_000 and children() == []
    assert repo.changes(row["sha"]) == kept
