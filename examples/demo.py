"""What `make demo` shows: a tap on real history, its lake, its tables, and a second run that moves only what is new.

    python examples/demo.py [REPOSITORY]

Everything is written below ./demo; the repository itself is only read.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEMO = Path("demo")
LAKE, TABLES, STATE, COPY = DEMO / "lake", DEMO / "tables", DEMO / "state.json", DEMO / "repo.git"
ENVIRONMENT = {**os.environ, "BURLER_LOG_LEVEL": os.environ.get("BURLER_LOG_LEVEL", "WARNING")}


def say(text: str) -> None:
    """A heading."""
    sys.stdout.write(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n== {text}\n")
    sys.stdout.flush()


def burler(*arguments: str, quiet: bool = False) -> None:
    """Run a burler command, after showing it; end with its exit code if it fails."""
    sys.stdout.write(f"$ burler {' '.join(arguments)}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    output = subprocess.DEVNULL if quiet else None
    ended = subprocess.run([sys.executable, "-m", "burler", *arguments], env=ENVIRONMENT, stdout=output, check=False)
    if ended.returncode:
        sys.exit(ended.returncode)
    sys.stdout.write(f"  ({time.monotonic() - begun:.1f} s)\n")
    sys.stdout.flush()


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
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir()
    top = git("-C", source, "rev-parse", "--absolute-git-dir")
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
    sys.stdout.write(f"The tap: {HERE.relative_to(Path.cwd()) if HERE.is_relative_to(Path.cwd()) else HERE}/tap_git\n")
    sys.stdout.write(f"Its input: the history of {Path(source).resolve()} ({COPY})\n")
    run = ["run", str(HERE / "tap_git"), "--sink", f"lake:{LAKE}", "--out-file", str(STATE)]

    say("1. First run: the whole history into a raw lake")
    burler(*run, quiet=True)
    say("2. The lake becomes Delta tables, on Spark")
    burler("export", str(LAKE), str(TABLES))
    say("3. One commit is added, and the tap runs again from its saved state")
    sys.stdout.write(f"new commit: {add_commit()}\n")
    burler(*run, "--state", str(STATE), quiet=True)
    say("4. Export again: only what is new is read (refs and authors are full tables: they come whole)")
    burler("export", str(LAKE), str(TABLES))
    say("5. An answer from Spark SQL")
    asked = subprocess.run([sys.executable, str(HERE / "demo_query.py"), str(TABLES)], env=ENVIRONMENT, check=False)
    if asked.returncode:
        sys.exit(asked.returncode)
    say("Where things are, and what to type next")
    sys.stdout.write(
        f"the lake    {LAKE}/raw/tap-git/<stream>/<schema>/*.singer.gz   zcat them: Singer messages\n"
        f"the tables  {TABLES}/tap-git/<stream>                          Delta: Spark, DuckDB, pandas read them\n"
        f"the state   {STATE}\n\n"
        f"TAP_GIT_REPO=. {_python()} -m burler run examples/tap_git | head -n 5     the messages themselves\n"
        f"{_python()} -m burler discover examples/tap_git                       the catalog\n"
        f"REPO=/path/to/another/repo make demo                                 the same on another repository\n"
        f"less docs/taps.md                                                    write your own tap\n"
    )


def _python() -> str:
    path = Path(sys.executable)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else "python"


if __name__ == "__main__":
    main()
