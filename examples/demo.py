"""What `make demo` shows: a tap on real history, its lake, its tables, and a second run that moves only what is new.

    python examples/demo.py [REPOSITORY]

Everything is written below ./demo; the repository itself is only read.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEMO = Path("demo")
MARK = DEMO / "made-by-the-demo.txt"
LAKE, TABLES, COPY = DEMO / "lake", DEMO / "tables", DEMO / "repo.git"
WIDTH = 150
ENVIRONMENT = {**os.environ, "BURLER_LOG_LEVEL": os.environ.get("BURLER_LOG_LEVEL", "WARNING")}


def say(text: str) -> None:
    """A heading."""
    sys.stdout.write(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n== {text}\n")
    sys.stdout.flush()


def burler(*arguments: str) -> None:
    """Run a burler command, after showing it; end with its exit code if it fails."""
    sys.stdout.write(f"$ burler {' '.join(arguments)}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    environment = {**ENVIRONMENT, "BURLER_LOG_LEVEL": "INFO"}  # shows that Spark is starting, and how long it took
    ended = subprocess.run([sys.executable, "-m", "burler", *arguments], env=environment, check=False)
    if ended.returncode:
        sys.exit(ended.returncode)
    sys.stdout.write(f"  ({time.monotonic() - begun:.1f} s)\n")
    sys.stdout.flush()


def run_tap() -> None:
    """Run the tap into the lake; of its log only what each stream moved is shown, and no STATE line."""
    arguments = ["run", shown(HERE / "tap_git"), "--sink", f"lake:{LAKE}"]
    sys.stdout.write(f"$ burler {' '.join(arguments)}\n")
    sys.stdout.flush()
    environment = {**ENVIRONMENT, "BURLER_LOG_LEVEL": "INFO"}
    command = [sys.executable, "-m", "burler", *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.stderr.write(ended.stderr)
        sys.exit(ended.returncode)
    for line in ended.stderr.splitlines():
        _time, _, said = line.partition(" ")
        if said.startswith("WARNING") or (said.startswith("INFO stream") and re.search(r"\brows? of\b", said)):
            sys.stdout.write(f"  {said.removeprefix('INFO ')}\n")
    sys.stdout.flush()


def show_messages() -> None:
    """What the tap prints of one row, each line cut where it goes on and on."""
    arguments = ["run", shown(HERE / "tap_git"), "--select", "authors", "--limit", "1"]
    sys.stdout.write(f"$ burler {' '.join(arguments)}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "burler", *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    for line in done.stdout.splitlines():
        sys.stdout.write(f"  {line if len(line) <= WIDTH else line[:WIDTH] + '...'}\n")


def shown(path: Path) -> str:
    """A path as a person would type it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def git(*arguments: str, **options: str) -> str:
    """Run git; its output, or the end of the demo with git's own words."""
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, errors="replace", check=False, **options
        )
    except FileNotFoundError:
        sys.exit("git is not installed. On Debian: apt-get install git")
    if done.returncode:
        sys.exit(f"git {arguments[0]}: {done.stderr.strip()}\nName a repository: REPO=/path/to/repo make demo")
    return done.stdout.strip()


def copy_repository(source: str) -> None:
    """A bare copy below ./demo, so that a commit can be added to it later; objects are shared, not copied."""
    top = git("-C", source, "rev-parse", "--absolute-git-dir")
    if DEMO.exists() and not MARK.exists():
        sys.exit(f"{DEMO.resolve()} is there already and was not made by this demo. Move it away, or start elsewhere.")
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir()
    MARK.write_text("Made by examples/demo.py, which removes this folder when it starts again.\n")
    git("clone", "--quiet", "--mirror", top, str(COPY))
    if not git("-C", str(COPY), "rev-list", "--all", "--max-count=1"):
        sys.exit(f"{source} has no commits yet. Name another repository: REPO=/path/to/repo make demo")


def add_commit() -> str:
    """One more commit on the copy's current branch: the same tree, a new message."""
    who = ["-c", "user.name=burler demo", "-c", "user.email=demo@example.com"]
    at = ["-C", str(COPY)]
    branch = git(*at, "for-each-ref", "--count=1", "--sort=-committerdate", "--format=%(refname)", "refs/heads", "refs")
    tip = git(*at, "rev-parse", f"{branch}^{{commit}}")
    sha = git(*at, *who, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "A commit made after the first run")
    git(*at, "update-ref", "refs/heads/burler-demo", sha)
    return sha


def main() -> None:
    """The demo."""
    source = sys.argv[1] if len(sys.argv) > 1 else "."
    copy_repository(source)
    ENVIRONMENT["TAP_GIT_REPO"] = str(COPY)
    python = shown(Path(sys.executable))
    sys.stdout.write(
        f"The tap:    {shown(HERE / 'tap_git')}/__init__.py (what it declares), gitrepo.py beside it runs git\n"
        f"Its input:  the history of {Path(source).resolve()} (read from a bare copy, {COPY})\n"
        f"'burler' stands for {python} -m burler\n"
    )
    say("1. What a tap prints: messages, for any Singer target")
    show_messages()
    say("2. First run: the whole history into a raw lake")
    run_tap()
    say("3. The lake becomes Delta tables, on Spark")
    burler("export", str(LAKE), str(TABLES))
    say("4. One commit is added to the copy, and the tap runs again: it goes on from what the lake has")
    sys.stdout.write(f"new commit: {add_commit()}\n")
    run_tap()
    say("5. Export again: only what is new is read (refs and authors are full tables: they come whole)")
    burler("export", str(LAKE), str(TABLES))
    say("6. An answer from Spark SQL")
    asked = subprocess.run([sys.executable, str(HERE / "demo_query.py"), str(TABLES)], env=ENVIRONMENT, check=False)
    if asked.returncode:
        sys.exit(asked.returncode)
    say("Where things are, and what to type next")
    rows = [
        (f"{LAKE}/raw/tap-git/*/*/*.singer.gz", "the lake: Singer messages, for zcat, jq, DuckDB, Spark"),
        (f"{python} -m burler lake ls {LAKE}", "what is in the lake; 'lake check' proves that it is whole"),
        (f"{python} -m burler lake docs {LAKE} {DEMO}/site", "pages about the lake; open index.html in a browser"),
        (f"{TABLES}/tap-git/*", "the tables: Delta, for Spark, DuckDB, pandas"),
        (f"{python} -m burler state show {LAKE}", "where its next run begins"),
        (
            f"TAP_GIT_REPO={source} {python} -m burler run {shown(HERE / 'tap_git')} --limit 3",
            "the messages themselves, whole",
        ),
        (f"TAP_GIT_REPO={source} {python} -m burler discover {shown(HERE / 'tap_git')}", "the catalog"),
        (f"{python} {shown(HERE / 'demo_query.py')} {TABLES}", "the query again; open it to see how tables are read"),
        ("REPO=/path/to/another/repo make demo", "the same on another repository (./demo is made anew)"),
        ("less docs/tutorial.md", "write your own tap, in ten minutes"),
    ]
    for what, why in rows:
        sys.stdout.write(f"  {why}\n      {what}\n")


if __name__ == "__main__":
    main()
