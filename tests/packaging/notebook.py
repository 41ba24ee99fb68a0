"""JupyterLab, burler with Spark, and singer-python with its pin overridden, in one environment: a real kernel runs
cells that read a tap, a lake and Spark. Downloads some 700 MB; needs a Java.

    python tests/packaging/notebook.py [--python python3.12]

Before the override ``pip check`` must be content; after it, it must tell of the one pin that was overridden.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from artifacts import build, copy_of_tree
from checks import TAPS

CELLS = """
import time, nbformat
from nbclient import NotebookClient

cells = [
    '''import burler, rows
from burler.testing import run_tap
print(run_tap(rows.tap).records("rows"))''',
    '''!burler run rows.py 2>log | burler lake write lake --tap-id tap-rows >state.json 2>>log
print("lake", list(burler.lake.read("lake", stream="rows").rows()))''',
    '''from burler import spark
rows = spark.session().read.format("burler").option("app", "rows.py").option("stream", "rows").load()
print("spark", rows.count())''',
    '''import singer
schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
print("singer", singer.Transformer().transform({"id": "3"}, schema))''',
]
made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(made, timeout=300, kernel_name="python3").execute()
print(*(output.get("text", "") for cell in made.cells for output in cell.outputs))
"""
SAID = ("[{'id': 1}, {'id': 2}]", "lake [{'id': 1}, {'id': 2}]", "spark 2", "singer {'id': 3}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burler-notebook-") as folder:
        place = Path(folder)
        wheel = build("wheel", copy_of_tree(place / "tree"), place / "dist")
        _run([options.python, "-m", "venv", str(place / "env")])
        pip = [str(place / "env" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        rest = ["simplejson<4", "python-dateutil<3", "pytz", "ciso8601"]
        _run([*pip, "install", "-q", "jupyterlab", "nbclient", f"singer-burler[spark] @ {wheel.as_uri()}", *rest])
        print(_run([*pip, "check"]))
        _run([*pip, "install", "-q", "--no-deps", "singer-python"])
        told = _run([*pip, "check"], code=1)
        print(told)
        if len(told.splitlines()) != 1 or "jsonschema" not in told:
            raise SystemExit("pip tells of more than the one pin")
        shutil.copytree(TAPS, place / "work")
        said = _run([pip[0], "-c", CELLS], cwd=place / "work", path=place / "env" / "bin")
    print(said)
    missing = [text for text in SAID if text not in said]
    print(f"not said: {missing}" if missing else "tap, lake, Spark and singer-python work in a kernel")
    return 1 if missing else 0


def _run(command: list[str], *, code: int = 0, cwd: Path | None = None, path: Path | None = None) -> str:
    apart = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if path:
        apart["PATH"] = f"{path}{os.pathsep}{apart['PATH']}"
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=cwd, env=apart
    )
    if done.returncode != code:
        raise SystemExit(f"$ {' '.join(command[:6])}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
