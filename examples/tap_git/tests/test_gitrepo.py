"""gitrepo against git itself: every repository is made here, and plain `git` says what is right."""

import gc
import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_git.gitrepo import Frontier, GitError, Repo
from tap_git.tests.gitbox import Git

FIGURES = ("files_changed", "lines_added", "lines_removed")


@pytest.fixture
def git(tmp_path):
    return Git(tmp_path / "repo").init()


def read(repo, known=(), **options):
    """(commit row, its file change rows), asked for as soon as the commit is there."""
    return [(row, repo.changes(row["sha"])) for row in repo.commits(repo.tips().values(), known, **options)]


def only(repo, sha):
    return next((row, files) for row, files in read(repo) if row["sha"] == sha)


def children():
    """The git processes of this process, dead ones that nobody waited for included."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    if not listed.exists():
        pytest.skip("needs Linux's /proc")
    return [pid for pid in listed.read_text().split() if Path(f"/proc/{pid}/comm").read_text() == "git\n"]


def assert_like_git(git, repo):
    """The rows of `repo` say what plain git log says, and every parent comes before its children."""
    rows = read(repo)
    shas = [row["sha"] for row, _ in rows]
    assert len(shas) == len(set(shas)) == int(git("rev-list", "--all", "HEAD", "--count"))
    seen = set()
    for row, _ in rows:
        assert set(row["parents"]) <= seen
        seen.add(row["sha"])
    assert sum(len(files) for _, files in rows) == len(
        git("log", "--all", "HEAD", "--numstat", "--format=").splitlines()
    )
    for row, files in rows:
        lines = git("show", "-m", "--first-parent", "--numstat", "--format=", row["sha"]).splitlines()
        pairs = [tuple(None if n == "-" else int(n) for n in line.split("\t")[:2]) for line in lines if line]
        if not row["is_merge"]:
            assert sorted(map(str, pairs)) == sorted(str((f["lines_added"], f["lines_removed"])) for f in files)
        else:
            assert files == []
        assert row["files_changed"] == len(files)
        assert row["lines_added"] == sum(f["lines_added"] or 0 for f in files)
        assert row["lines_removed"] == sum(f["lines_removed"] or 0 for f in files)
        assert git("log", "-1", "--format=%B", row["sha"]) == row["message"].strip()
    authors = Counter(git("log", "--all", "HEAD", "--format=%an <%ae>").splitlines())
    assert {f"{a['name']} <{a['email']}>": a["commits"] for a in repo.authors()} == authors
    json.dumps(rows, ensure_ascii=False).encode()


# ---- rows ----------------------------------------------------------------------------------------


def test_commit_row_and_file_rows(git):
    root = git.commit("First\n\nbody line 1\n\n  indented", {"a.txt": "1\n2\n", "d/b.txt": "x\n"})
    sha = git.commit("second", {"a.txt": "1\n3\n4\n"})
    repo = Repo(git.path)
    (first, added), (second, changed) = read(repo)
    assert first == {
        "sha": root,
        "parents": [],
        "tree": git("rev-parse", f"{root}^{{tree}}"),
        "author_name": "Ann",
        "author_email": "ann@example.org",
        "authored_at": "2023-11-14T22:13:20Z",
        "committer_name": "Cem",
        "committer_email": "cem@example.org",
        "committed_at": "2023-11-14T22:15:00Z",
        "subject": "First",
        "message": "First\n\nbody line 1\n\n  indented",
        "is_merge": False,
        "files_changed": 2,
        "lines_added": 3,
        "lines_removed": 0,
    }
    none = {"old_path": None, "lines_removed": 0, "sha": root, "status": "A"}
    assert added == [{"path": "a.txt", "lines_added": 2} | none, {"path": "d/b.txt", "lines_added": 1} | none]
    assert second["parents"] == [root]
    assert changed == [
        {"sha": sha, "path": "a.txt", "old_path": None, "status": "M", "lines_added": 2, "lines_removed": 1}
    ]
    assert_like_git(git, repo)


def test_figures_that_nobody_wants_are_left_out(git):
    git.commit("a", {"a": "1\n"})
    git.commit("b", {"a": "2\n"})
    repo = Repo(git.path)
    whole = read(repo)
    assert [row["files_changed"] for row, _ in whole] == [1, 1]
    bare = [({k: v for k, v in row.items() if k not in FIGURES}, files) for row, files in whole]
    assert read(repo, figures=False) == bare
    assert list(repo.commits(repo.tips().values(), changes=False)) == [row for row, _ in whole]


def test_where_nobody_wants_figures_or_changes_git_compares_no_trees(git):
    shas = [git.commit(str(n), {"f": f"{n}\n", "g/h": f"{n}\n"}) for n in range(3)]
    for sha in shas:  # without its trees nothing can be compared
        tree = git("rev-parse", f"{sha}^{{tree}}")
        (git.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    repo = Repo(git.path)
    rows = repo.commits(repo.tips().values(), figures=False, changes=False)
    assert [row["sha"] for row in rows] == shas
    with pytest.raises(GitError, match="git fsck"):
        read(repo)


def test_kinds_of_changes(git):
    git.commit("files", {"keep": "1\n" * 50, "move": "2\n" * 50, "gone": "g\n", "exec": "x\n", "link": "l\n"})
    (git.path / "to").mkdir()
    git("mv", "move", "to/here")
    (git.path / "gone").unlink()
    (git.path / "exec").chmod(0o755)
    (git.path / "link").unlink()
    (git.path / "link").symlink_to("keep")
    sha = git.commit("change", {"binary": b"\0\1\2", "to/here": "2\n" * 50 + "3\n"})
    row, files = only(Repo(git.path), sha)
    assert {(f["status"], f["old_path"], f["path"], f["lines_added"], f["lines_removed"]) for f in files} == {
        ("A", None, "binary", None, None),
        ("M", None, "exec", 0, 0),
        ("D", None, "gone", 0, 1),
        ("T", None, "link", 1, 1),
        ("R", "move", "to/here", 1, 0),
    }
    assert [row[f] for f in FIGURES] == [5, 2, 2]
    assert_like_git(git, Repo(git.path))


def test_submodule(git):
    git("update-index", "--add", "--cacheinfo", "160000", "1" * 40, "sub")
    git("commit", "-q", "-m", "gitlink")
    git("update-index", "--add", "--cacheinfo", "160000", "2" * 40, "sub")
    git("commit", "-q", "-m", "gitlink 2")
    git("config", "diff.ignoreSubmodules", "all")
    (_, first), (_, second) = read(Repo(git.path))
    assert [(f["path"], f["status"], f["lines_added"], f["lines_removed"]) for f in first + second] == [
        ("sub", "A", 1, 0),
        ("sub", "M", 1, 1),
    ]


def test_merges_have_no_file_rows_and_octopus(git):
    git.commit("root", {"f": "0\n"})
    for name in "abc":
        git("checkout", "-q", "-b", name, "main")
        git.commit(name, {name: "1\n"})
    git("checkout", "-q", "main")
    sha = git.merge("a", "b", "c")
    row, files = only(Repo(git.path), sha)
    assert (row["is_merge"], files) == (True, [])
    assert row["parents"] == git("log", "-1", "--format=%P").split()
    assert len(row["parents"]) >= 3
    assert [row[f] for f in FIGURES] == [0, 0, 0]
    assert_like_git(git, Repo(git.path))


def test_messages_cannot_be_taken_for_structure(git):
    messages = ["", "\n", ">" + "a" * 40, ":100644 100644 0000000 1111111 M", "1\t1\tf", "\x01\x02", "a\n\n>b\n:c"]
    shas = [git.commit(m, {"f": f"{i}\n"}) for i, m in enumerate(messages)]
    raw = b"tree %s\nauthor A <a> 1 +0000\ncommitter C <c> 2 +0000\n\nbefore\0after\n"
    shas.append(git.object("commit", raw % git("rev-parse", "HEAD^{tree}").encode()))
    git("update-ref", "refs/heads/nul", shas[-1])
    rows = {row["sha"]: (row, files) for row, files in read(Repo(git.path))}
    for sha, message in zip(shas, messages, strict=False):
        assert rows[sha][0]["message"] == message.strip("\n")
        assert [f["path"] for f in rows[sha][1]] == ["f"]
    assert rows[shas[-1]][0]["message"] == "before"
    assert rows[shas[1]][0]["subject"] == ""
    assert len(rows) == len(shas)


def test_odd_paths_are_told_apart(git):
    names = [
        b"n\nl",
        b"t\tb",
        b'"q"',
        b'in"side',
        b"\xe9t\xe9",
        "été".encode(),
        b'"\\351t\\351"',
        b"\x01",
        b":c",
        b">g",
    ]
    names += ["deep/" + "ß" * 30, b"back\\slash", b"\xed\xa0\x80", b" lead", b"1\t1\tx"]
    sha = git.commit("odd", {os.fsdecode(n) if isinstance(n, bytes) else n: f"{n!r}\n" for n in names})
    _, files = only(Repo(git.path), sha)
    paths = [f["path"] for f in files]
    assert len(set(paths)) == len(names)
    assert {"n\nl", "t\tb", '"\\"q\\""', 'in"side', '"\\351t\\351"', "été", ":c", '"\\355\\240\\200"'} < set(paths)
    assert '"\\"\\\\351t\\\\351\\""' in paths
    for name in names:
        git("mv", "--", name, (name if isinstance(name, bytes) else name.encode()) + b".2")
    sha = git.commit("moved")
    _, files = only(Repo(git.path), sha)
    assert {f["status"] for f in files} == {"R"}
    assert {f["old_path"] for f in files} == set(paths)
    assert len({f["path"] for f in files} - set(paths)) == len(names)
    assert_like_git(git, Repo(git.path))


def test_text_that_is_not_utf8(git):
    git.commit("m", {"f": "1"})
    tree = git("rev-parse", "HEAD^{tree}").encode()

    def make(name, extra, message):
        raw = b"tree %s\nauthor %s <%s@x> 5 +0000\ncommitter C <c> 6 +0000\n%s\n%s\n"
        sha = git.object("commit", raw % (tree, name, name, extra, message))
        git("update-ref", f"refs/heads/{sha}", sha)
        return sha

    utf8 = make("Zoë".encode(), b"", "Grüße".encode())
    declared = make("Žofie".encode("latin2"), b"encoding ISO-8859-2\n", "žluť".encode("latin2"))
    silent = make("Zoë".encode("latin-1"), b"", "Grüße".encode("latin-1"))
    unknown = make(b"Zo\xeb", b"encoding x-klingon\n", b"Gr\xfc\xdfe")
    wrong = make(b"\xed\xa0\x80", b"encoding UTF-8\n", b"\xff")
    rows = {row["sha"]: row for row, _ in read(Repo(git.path))}
    assert [rows[s]["author_name"] for s in (utf8, silent, unknown)] == ["Zoë"] * 3
    assert [rows[s]["message"] for s in (utf8, silent, unknown)] == ["Grüße"] * 3
    assert (rows[declared]["author_name"], rows[declared]["subject"]) == ("Žofie", "žluť")
    assert (rows[wrong]["author_name"], rows[wrong]["message"]) == ("í\xa0\x80", "ÿ")
    assert sum(a["commits"] for a in Repo(git.path).authors() if a["name"] == "Zoë") == 3


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"0 +0000", "1970-01-01T00:00:00Z"),
        (b"1700000000 +1400", "2023-11-14T22:13:20Z"),
        (b"4102444800 +0000", "2100-01-01T00:00:00Z"),
        (b"253402300799 +0000", "9999-12-31T23:59:59Z"),
        (b"253402300800 +0000", None),
        (b"99999999999999999999999999 +0000", None),
        (b"garbage", None),
        (b"", None),
    ],
)
def test_times(git, stamp, expected):
    tree = git.object("tree", b"").encode()
    sha = git.object("commit", b"tree %s\nauthor A <a> %s\ncommitter C <c> %s\n\nm\n" % (tree, stamp, stamp))
    git("update-ref", "refs/heads/main", sha)
    (row, files), *_ = read(Repo(git.path))
    assert (row["authored_at"], row["committed_at"], files) == (expected, expected, [])
    (author,) = Repo(git.path).authors()
    assert author["first_authored_at"] == author["last_authored_at"] == expected


@pytest.mark.parametrize("who", [b"author A <a> -86400 +0000\n", b"author\n", b"", b"author <<>> x\n", b"author A 5\n"])
def test_hand_made_commits_do_not_crash(git, who):
    tree = git.object("tree", b"").encode()
    sha = git.object("commit", b"tree %s\n%scommitter C <c> 7 +0000\n\nm\n" % (tree, who))
    git("update-ref", "refs/heads/main", sha)
    repo = Repo(git.path)
    ((row, _),) = read(repo)
    assert row["authored_at"] in (None, "1969-12-31T00:00:00Z", "1970-01-01T00:00:05Z")
    assert row["message"] == "m"
    assert len(list(repo.authors())) == 1


# ---- refs ----------------------------------------------------------------------------------------


def test_refs_of_all_kinds(git):
    root = git.commit("root", {"f": "1\n"})
    git("tag", "light")
    git("tag", "-a", "ann", "-m", "line 1\nline 2\n\nbody")
    git("tag", "-a", "nested", "-m", "of a tag", "ann")
    git("tag", "-a", "nested2", "-m", "of a tag of a tag", "nested")
    git("tag", "-a", "treetag", "-m", "t", "HEAD^{tree}")
    git("update-ref", "refs/blobs/b", git("rev-parse", "HEAD:f"))
    git("update-ref", "refs/trees/t", git("rev-parse", "HEAD^{tree}"))
    git("update-ref", "refs/remotes/origin/main", root)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    raw = b"object %s\ntype commit\ntag old\n\nno tagger\n" % root.encode()
    git("update-ref", "refs/tags/old", git.object("tag", raw))
    repo = Repo(git.path)
    rows = {row["name"]: row for row in repo.refs()}
    assert next(iter(rows)) == "HEAD"
    assert len(rows) == 1 + len(git("for-each-ref").splitlines())
    plain = {"type": "commit", "sha": root, "commit_sha": root} | dict.fromkeys(("tagger_name", "tagged_at", "subject"))
    assert rows["HEAD"] == {"name": "HEAD", "symref": "refs/heads/main"} | plain
    assert rows["refs/tags/light"] == {"name": "refs/tags/light", "symref": None} | plain
    assert rows["refs/remotes/origin/HEAD"]["symref"] == "refs/remotes/origin/main"
    assert rows["refs/tags/ann"] == {
        "name": "refs/tags/ann",
        "type": "tag",
        "sha": git("rev-parse", "refs/tags/ann"),
        "commit_sha": root,
        "symref": None,
        "tagger_name": "Cem",
        "tagged_at": "2023-11-14T22:15:00Z",
        "subject": "line 1 line 2",
    }
    assert {rows[f"refs/tags/{n}"]["commit_sha"] for n in ("nested", "nested2")} == {root}
    assert (rows["refs/tags/treetag"]["type"], rows["refs/tags/treetag"]["commit_sha"]) == ("tag", None)
    assert [rows[n]["type"] for n in ("refs/blobs/b", "refs/trees/t")] == ["blob", "tree"]
    old = rows["refs/tags/old"]
    assert (old["tagger_name"], old["tagged_at"], old["subject"]) == (None, None, "no tagger")
    assert repo.tips() == {name: root for name, row in rows.items() if row["commit_sha"]}
    assert set(repo.tips()) == set(rows) - {"refs/tags/treetag", "refs/blobs/b", "refs/trees/t"}
    assert len(read(repo)) == 1


def test_detached_head(git):
    first = git.commit("1")
    git.commit("2")
    git("checkout", "-q", "--detach", first)
    lone = git.commit("only HEAD knows")
    repo = Repo(git.path)
    assert next(repo.refs())["symref"] is None
    assert repo.tips()["HEAD"] == lone
    assert lone in {row["sha"] for row, _ in read(repo)}
    assert sum(a["commits"] for a in repo.authors()) == 3


def test_broken_refs_are_left_out(git):
    sha = git.commit("1")
    heads = git.path / ".git/refs/heads"
    git("symbolic-ref", "refs/heads/dangling", "refs/heads/nowhere")
    (heads / "garbage").write_text("not a sha\n")
    (heads / "empty").write_text("")
    (heads / "zero").write_text("0" * 40 + "\n")
    (heads / "lost").write_text("1" * 40 + "\n")
    repo = Repo(git.path)
    assert repo.tips() == {"HEAD": sha, "refs/heads/main": sha}
    assert [row["name"] for row in repo.refs()] == ["HEAD", "refs/heads/main"]
    assert len(read(repo)) == 1


def test_head_of_a_lost_branch(git):
    git.commit("1")
    git("checkout", "-q", "-b", "other")
    git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    assert set(Repo(git.path).tips()) == {"refs/heads/main", "refs/heads/other"}


def test_ref_name_that_is_not_utf8(git):
    git.commit("1")
    git("update-ref", b"refs/heads/\xe9", "HEAD")
    assert '"refs/heads/\\351"' in Repo(git.path).tips()


def test_empty_repository(git):
    repo = Repo(git.path)
    assert list(repo.refs()) == list(repo.authors()) == read(repo) == repo.shallow() == []
    assert repo.tips() == {}
    assert repo.missing(["1" * 40]) == {"1" * 40}


# ---- where and how git runs ----------------------------------------------------------------------


def test_places_of_one_repository(git, tmp_path):
    sha = git.commit("1", {"sub/dir/f": "1\n"})
    git("clone", "-q", "--bare", ".", tmp_path / "bare.git")
    git("worktree", "add", "-q", tmp_path / "tree")
    for place in (git.path, git.path / "sub/dir", git.path / ".git", tmp_path / "bare.git", tmp_path / "tree"):
        repo = Repo(str(place))
        assert repo.tips()["HEAD"] == sha
        assert [f["path"] for _, files in read(repo) for f in files] == ["sub/dir/f"]
        assert repo.shallow() == []


def test_relative_path_survives_chdir(git, tmp_path, monkeypatch):
    sha = git.commit("1")
    monkeypatch.chdir(tmp_path)
    repo = Repo("repo")
    monkeypatch.chdir("/")
    assert repo.tips()["HEAD"] == sha


def test_sha256_repository(tmp_path):
    git = Git(tmp_path / "r").init("--object-format=sha256")
    git.commit("1", {"f": "1\n"})
    sha = git.commit("2", {"f": "2\n"})
    repo = Repo(git.path)
    assert (len(sha), len(read(repo)), read(repo, [sha])) == (64, 2, [])


HOSTILE = """
[log] showSignature=true
 showRoot=false
 mailmap=true
 date=relative
 decorate=full
 diffMerges=first-parent
[diff] renames=false
 orderFile=/dev/fd/99
 relative=true
 noprefix=true
 external=/bin/false
 ignoreSubmodules=all
 algorithm=patience
 renameLimit=1
[core] quotePath=true
 bigFileThreshold=1
 pager=/bin/false
 abbrev=4
 attributesFile={attributes}
[color] ui=always
 diff=always
[i18n] logOutputEncoding=UTF-16
 commitEncoding=EBCDIC
[format] pretty=oneline
[notes] displayRef=*
[pager] log=true
"""


def test_neither_settings_nor_environment_change_the_rows(git, tmp_path, monkeypatch):
    git.commit("root", {"a/é": "1\n" * 30, ".mailmap": "Other <o@x> <ann@example.org>\n"})
    git("mv", "a/é", "b")
    git.commit("move")
    git.commit("Ünïcode", {"c": "1\n"})
    git("notes", "add", "-m", "a note")
    expected = read(Repo(git.path)), list(Repo(git.path).refs()), list(Repo(git.path).authors())
    (tmp_path / "attributes").write_text("* binary\n")
    (tmp_path / "config").write_text(HOSTILE.format(attributes=tmp_path / "attributes"))
    for name in [n for n in os.environ if n.startswith("GIT_") or n in ("HOME", "LANG", "XDG_CONFIG_HOME")]:
        monkeypatch.delenv(name)
    settings = {"GIT_CONFIG_GLOBAL": str(tmp_path / "config"), "GIT_EXTERNAL_DIFF": "/bin/false", "LC_ALL": "C"}
    settings |= {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/", "GIT_DIFF_OPTS": "-u0", "GIT_NAMESPACE": "x"}
    settings |= {"GIT_TRACE": "1", "GIT_PAGER": "false", "PAGER": "false", "LANGUAGE": "de", "GIT_INDEX_FILE": "/x"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for place in (git.path, git.path / "a"):
        place.mkdir(exist_ok=True)
        repo = Repo(place)
        assert (read(repo), list(repo.refs()), list(repo.authors())) == expected
    git("config", "include.path", str(tmp_path / "config"))
    assert read(Repo(git.path)) == expected[0]
    (moved,) = next(files for row, files in expected[0] if row["subject"] == "move")
    assert (moved["status"], moved["old_path"], moved["path"]) == ("R", "a/é", "b")


def test_replacements_and_grafts_are_not_followed(git):
    first, second = git.commit("1", {"f": "1\n"}), git.commit("2", {"f": "2\n"})
    expected = read(Repo(git.path))
    git("replace", "--graft", second)
    (git.path / ".git/info").mkdir(exist_ok=True)
    (git.path / ".git/info/grafts").write_text(f"{second}\n")
    repo = Repo(git.path)
    assert [(row, repo.changes(row["sha"])) for row in repo.commits([second])] == expected
    assert repo.changes(first) == expected[0][1] and repo.changes(second) == expected[1][1]  # by asking git
    repo.close()
    assert expected[1][0]["parents"] == [first]


def test_attributes_of_the_repository_count_as_in_git_log(git):
    git.commit("1", {".gitattributes": "*.min.js -diff\n*.x diff=drv\n", "a.min.js": "1\n", "b.x": "1\n"})
    git("config", "diff.drv.textconv", "/bin/false")
    git("config", "diff.drv.command", "/bin/false")
    assert {f["path"]: f["lines_added"] for f in read(Repo(git.path))[0][1]}["a.min.js"] is None
    assert_like_git(git, Repo(git.path))


# ---- errors --------------------------------------------------------------------------------------


def test_not_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(GitError, match=r"(?s)not a git repository.*Give the folder of a clone"):
        Repo(tmp_path)
    with pytest.raises(GitError, match=r"(?s)cannot change to.*existing folder"):
        Repo(tmp_path / "nope")
    (tmp_path / "file").write_text("")
    with pytest.raises(GitError, match="cannot change to"):
        Repo(tmp_path / "file")
    with pytest.raises(GitError, match="null byte"):
        Repo("a\0b")


def test_dubious_ownership(git, monkeypatch):
    git.commit("1")
    monkeypatch.setattr("tap_git.gitrun._ENV", {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "LC_ALL": "C"})
    with pytest.raises(GitError, match=r"(?s)dubious ownership.*safe\.directory.*If you trust its owner"):
        Repo(git.path)


def test_git_is_not_installed(git, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitError, match="Install git"):
        Repo(git.path)


def test_damage_is_an_error_with_gits_words(git):
    shas = [git.commit(str(i), {"f": f"{i}\n"}) for i in range(3)]
    repo = Repo(git.path)
    (git.path / ".git/objects" / shas[0][:2] / shas[0][2:]).unlink()
    with pytest.raises(GitError, match=rf"(?s)git log in .*{shas[0]}.*git fsck"):
        read(repo)
    with pytest.raises(GitError, match=r"(?s)bad object 1111.*git fsck"):
        list(repo.commits(["1" * 40]))
    with pytest.raises(GitError, match="bad revision 'rubbish'"):
        list(repo.commits(["rubbish"]))
    # What lies behind a known commit is not looked at.
    assert [row["sha"] for row, _ in read(repo, [shas[1]])] == [shas[2]]


def test_partial_clone_is_an_error_and_no_fetch(git, tmp_path):
    git.commit("1", {"f": "1\n"})
    git.commit("2", {"f": "2\n"})
    git("config", "uploadpack.allowFilter", "true")
    Git(tmp_path)("clone", "-q", "--bare", "--filter=blob:none", f"file://{git.path}", "partial")
    repo = Repo(tmp_path / "partial")
    with pytest.raises(GitError, match="clone without --filter"):
        read(repo)
    assert len(list(repo.authors())) == 1
    assert repo.missing(["1" * 40]) == {"1" * 40}


def test_no_process_is_left_behind(git):
    for i in range(20):
        git.commit(f"{i}", {"f": f"{i}\n" * 2000})
    repo = Repo(git.path)
    for rows in (repo.commits(repo.tips().values()), repo.refs(), repo.authors()):
        next(rows)
        rows.close()
        assert children() == []
    rows = repo.commits(repo.tips().values())
    next(rows)
    assert len(children()) == 1
    del rows
    gc.collect()
    assert children() == []
    repo.commits(repo.tips().values())  # never started: no process
    with pytest.raises(GitError):
        list(repo.commits(["1" * 40]))
    assert children() == []


def test_git_killed_in_the_middle(tmp_path):
    git = Git(tmp_path / "r").init()
    stream = "".join(
        f"commit refs/heads/main\ncommitter C <c> {i} +0000\ndata 3000\n{'x' * 2999}\n\n" for i in range(1, 400)
    )
    git("fast-import", "--quiet", stdin=stream.encode())
    rows = Repo(git.path).commits(Repo(git.path).tips().values())
    next(rows)
    os.kill(int(children()[0]), 9)
    with pytest.raises(GitError, match="ended with code -9"):
        list(rows)
    assert children() == []


# ---- what is new ---------------------------------------------------------------------------------


def test_known_and_what_was_lost(git):
    first = git.commit("1")
    second = git.commit("2")
    git("checkout", "-q", "-b", "side", first)
    gone = git.commit("side")
    repo = Repo(git.path)
    known = list(repo.tips().values())
    assert read(repo, known) == []
    git("checkout", "-q", "main")
    git("branch", "-q", "-D", "side")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    new = git.commit("3")
    rubbish = ["--all", "main", "", "é", "1" * 40, git("rev-parse", "HEAD^{tree}")]
    assert repo.missing([second, gone, *rubbish]) == {gone, *rubbish}
    assert [row["sha"] for row, _ in read(repo, [second, gone, *rubbish])] == [new]
    assert {row["sha"] for row, _ in read(repo, [gone])} == {first, second, new}
    assert list(repo.commits([], [second])) == []


def test_thousands_of_tips_and_known(tmp_path):
    git = Git(tmp_path / "r").init()
    stream = "".join(f"commit refs/heads/b{i}\ncommitter C <c> {i} +0000\ndata 0\n\n" for i in range(1, 4001))
    git("fast-import", "--quiet", stdin=stream.encode())
    repo = Repo(git.path)
    tips = list(repo.tips().values())
    assert len(tips) == len(read(repo)) == 4000
    assert len(list(repo.commits(tips, tips[1:]))) == 1
    assert len(list(repo.refs())) == 4000


def test_shallow_clone_then_deepened(git, tmp_path):
    for i in range(6):
        git.commit(f"{i}", {"f": f"{i}\n", f"g{i}": "1\n"})
    clone = Git(tmp_path / "clone")
    clone("clone", "-q", "--depth", "2", f"file://{git.path}", ".")
    repo = Repo(clone.path)
    (boundary,) = repo.shallow()
    before = read(repo)
    assert [row["sha"] for row, _ in before] == [boundary, clone("rev-parse", "HEAD")]
    row, files = before[0]
    assert (row["parents"], files) == ([git("rev-parse", "main~2")], [])
    assert [row[f] for f in FIGURES] == [None, None, None]
    assert before[1][0]["files_changed"] == 2

    known = Frontier({})
    for row, _ in before:
        known.add(row["sha"], row["parents"])
    clone("fetch", "-q", "--unshallow")
    new = git.commit("new", {"f": "new\n"})
    clone("pull", "-q", "--ff-only")
    assert repo.shallow() == []
    assert [row["sha"] for row, _ in read(repo, known.shas())] == [new]
    after = read(repo, known.shas(), reopen=[boundary])
    full = read(Repo(git.path))
    assert {r["sha"] for r, _ in before + after} == {r["sha"] for r, _ in full} == git.shas("--all")
    assert [pair for pair in full if pair[0]["sha"] != before[1][0]["sha"]] == after
    assert boundary in {r["sha"] for r, _ in after}


def test_deepened_in_part_and_lost_boundary(git, tmp_path):
    for i in range(8):
        git.commit(f"{i}", {"f": f"{i}\n"})
    clone = Git(tmp_path / "clone")
    clone("clone", "-q", "--depth", "2", f"file://{git.path}", ".")
    repo = Repo(clone.path)
    old, known = repo.shallow(), list(repo.tips().values())
    clone("fetch", "-q", "--depth", "5")
    reopen = set(old) - set(repo.shallow())
    rows = read(repo, known, reopen=reopen)
    assert [row["subject"] for row, _ in rows] == ["3", "4", "5", "6"]
    assert [row["files_changed"] for row, _ in rows] == [None, 1, 1, 1]
    assert read(repo, known, reopen=["1" * 40]) == []
    # With nothing known, no commit comes twice.
    rows = [row["sha"] for row, _ in read(repo, reopen=[*old, *old])]
    assert sorted(rows) == sorted(clone.shas("--all"))


def test_depth_that_ends_at_the_root(git, tmp_path):
    git.commit("root", {"f": "1\n"})
    clone = Git(tmp_path / "clone")
    clone("clone", "-q", "--depth", "1", f"file://{git.path}", ".")
    ((row, files),) = read(Repo(clone.path))
    assert (row["files_changed"], len(files)) == (1, 1)


# ---- the frontier --------------------------------------------------------------------------------

DAG = st.integers(1, 14).flatmap(
    lambda n: st.tuples(*(st.sets(st.integers(0, i - 1), max_size=3) if i else st.just(set()) for i in range(n)))
)


def make_dag(git, parents):
    """One commit and one ref per node; several share a second, and times go backwards."""
    lines = []
    for i, above in enumerate(parents):
        first, *rest = sorted(above) or [None]
        lines += [f"reset refs/heads/n{i}\n" if first is None else "", f"commit refs/heads/n{i}\nmark :{i + 1}\n"]
        lines += [f"committer C <c> {1000 - i // 3} +0000\ndata {len(str(i))}\n{i}\n"]
        lines += [f"from :{first + 1}\n"] if first is not None else []
        lines += [f"merge :{p + 1}\n" for p in rest]
    git("fast-import", "--quiet", stdin="".join(lines).encode())


@settings(max_examples=15, deadline=None)
@given(parents=DAG, stops=st.lists(st.integers(0, 5), max_size=4))
def test_frontier_resumes_anywhere(parents, stops):
    folder = tempfile.mkdtemp()
    try:
        git = Git(folder).init("--bare")
        make_dag(git, parents)
        repo, state, seen = Repo(folder), {}, []
        for stop in [*stops, None]:
            frontier = Frontier(state)
            rows = repo.commits(repo.tips().values(), frontier.shas())
            for done, row in enumerate(rows):
                if done == stop:
                    break
                seen.append(row["sha"])
                frontier.add(row["sha"], row["parents"])
            rows.close()
            state = json.loads(json.dumps(state))
            if seen:
                assert git.shas(*state) == set(seen)
                assert set(state) == set(git("merge-base", "--independent", *state).split())
        assert len(seen) == len(set(seen))
        assert set(seen) == git.shas("--all")
        assert len(seen) == len(parents)
    finally:
        shutil.rmtree(folder)


@settings(max_examples=15, deadline=None)
@given(parents=DAG, cuts=st.sets(st.integers(0, 13), min_size=1, max_size=3))
def test_reopened_anywhere(parents, cuts):
    with tempfile.TemporaryDirectory() as folder:
        git = Git(folder).init("--bare")
        make_dag(git, parents)
        repo, tips = Repo(folder), Repo(folder).tips()
        full = {row["sha"]: (row, files) for row, files in read(repo)}
        old = [tips[f"refs/heads/n{i}"] for i in cuts if i < len(parents)]
        last = [tips[f"refs/heads/n{len(parents) - 1}"]]
        (git.path / "shallow").write_text("".join(f"{sha}\n" for sha in old))
        before, known = [(row, repo.changes(row["sha"])) for row in repo.commits(last)], Frontier({})
        for row, _ in before:
            known.add(row["sha"], row["parents"])
            assert row["parents"] == full[row["sha"]][0]["parents"]
        assert set(repo.shallow()) == set(old)
        (git.path / "shallow").unlink()
        rows = repo.commits(last, known.shas(), reopen=old)
        after = [(row, repo.changes(row["sha"])) for row in rows]
        shas = [row["sha"] for row, _ in after]
        assert len(shas) == len(set(shas))
        assert set(old) <= set(shas)
        assert git.shas(*last) <= {row["sha"] for row, _ in before + after} <= git.shas(*last, *old)
        merged = {row["sha"]: (row, files) for row, files in before + after}
        assert all(full[sha] == pair for sha, pair in merged.items())
        seen = {row["sha"] for row, _ in before}
        for row, _ in after:
            assert set(row["parents"]) <= seen
            seen.add(row["sha"])
