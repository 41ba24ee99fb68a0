"""burler's wheel in a fresh environment with no extra, and one for each extra alone: really downloaded, really tried.

    make test-extras                                           # every extra, on the Python of .venv
    make test-extras ARGS="--python python3.12 none all"       # some, on another

What is tried stands in checks.py. Needs an index (or its cache), a Java for Spark's, and 20 GB of
disk: uv's cache grows by some 2.4 GB with each environment that has Spark (``uv cache clean``).
uv makes the environments if it is there, else venv and pip. The exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from artifacts import build, copy_of_tree, metadata, unpacked, version_of
from checks import WORKS, lacking, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="'none' is an install without any; default: all")
    parser.add_argument("--python", default=sys.executable, help="the Python that is installed into")
    options = parser.parse_args()
    extras = [extra.replace("none", "") for extra in options.extras] or list(WORKS)
    unknown = set(extras) - set(WORKS)
    if unknown:
        parser.error(f"no such extra: {', '.join(sorted(unknown))}. There are: none, {', '.join(filter(None, WORKS))}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="burler-extras-") as folder:
        place = Path(folder)
        tree = unpacked(build("sdist", copy_of_tree(place / "tree"), place / "dist"), place / "unpacked")
        wheel = build("wheel", tree, place / "dist")
        print(f"{wheel.name} on {_version(options.python)}")
        print(f"{'extra':10} {'packages':>8} {'MB':>6} {'install s':>9} {'try s':>6}")
        for extra in extras:
            wrong += bool(_try(extra, options.python, wheel, place / "env"))
    print(f"{wrong} of {len(extras)} with something wrong" if wrong else f"all {len(extras)} work")
    return 1 if wrong else 0


def _try(extra: str, python: str, wheel: Path, env: Path) -> list[str]:
    """Install the wheel with one extra and try what it is for; gives what was wrong, which is printed as well."""
    begun = time.monotonic()
    shutil.rmtree(env, ignore_errors=True)
    try:
        packages, wrong = _install(extra, python, wheel, env)
    except subprocess.CalledProcessError as error:
        print(f"{extra or 'none':10} can't be installed:\n{error.stdout}", flush=True)
        return [error.stdout]
    installed = time.monotonic()
    for number, step in enumerate((*WORKS[extra], *lacking(extra))):
        with tempfile.TemporaryDirectory() as work:
            said = run(step, env / "bin", Path(work) / str(number), version_of(metadata(wheel)))
        wrong += [said] if said else []
    size = sum(file.lstat().st_size for file in env.rglob("*")) / 1e6
    took, tried = installed - begun, time.monotonic() - installed
    verdict = "WRONG" if wrong else "ok"
    print(f"{extra or 'none':10} {packages:8} {size:6.0f} {took:9.1f} {tried:6.1f}  {verdict}", flush=True)
    for said in wrong:
        print(said, flush=True)
    return wrong


def _install(extra: str, python: str, wheel: Path, env: Path) -> tuple[int, list[str]]:
    """Gives the number of packages, and what ``pip check`` has to say."""
    what = f"singer-burler[{extra}] @ {wheel.as_uri()}" if extra else f"singer-burler @ {wheel.as_uri()}"
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv:
        _done(uv, "venv", "-q", "-p", python, str(env))
        pip, last = [uv, "pip"], ["-p", str(env / "bin" / "python")]
    else:
        _done(python, "-m", "venv", str(env))
        pip, last = [str(env / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"], []
    _done(*pip, "install", "-q", *last, what)
    listed = _done(*pip, "list", "--format=freeze", *last)
    checked = subprocess.run([*pip, "check", *last], capture_output=True, text=True, check=False)
    names = [line for line in listed.splitlines() if "==" in line and not line.startswith(("pip==", "setuptools=="))]
    return len(names), [checked.stdout + checked.stderr] if checked.returncode else []


def _done(*command: str) -> str:
    asked = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return asked.stdout


def _version(python: str) -> str:
    return _done(python, "--version").strip()


if __name__ == "__main__":
    sys.exit(main())
