"""A tap named so that another process finds it, or sent by value."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import burler.spark
from burler.errors import AppError, UsageError
from burler.testing import run_tap

TAP = """
import threading
import burler

tap = burler.tap("tap-sent")
lock = threading.Lock()

class Client:
    def __init__(self):
        self.lock = threading.Lock()
        self.rows = [{"id": 1}, {"id": 2}]

@tap.client
def client():
    return Client()

@tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def rows(client):
    with client.lock:
        return client.rows
"""
LOAD = """
import pickle, sys
from burler.testing import run_tap
ref = pickle.load(open(sys.argv[1], "rb"))
print([row["id"] for row in run_tap(ref.load().tap).records("rows")])
"""


def reference(app: str | Path | burler.Tap) -> Any:
    """What Spark sends of a tap."""
    return pickle.loads(base64.b64decode(burler.spark.reference(app).partition(":")[2]))


def elsewhere(ref: Any, folder: Path) -> str:
    """What another process, which starts in another folder, gets of the tap."""
    sent = folder / "ref"
    sent.write_bytes(pickle.dumps(ref))
    other = folder / "other"
    other.mkdir()
    done = subprocess.run([sys.executable, "-c", LOAD, str(sent)], cwd=other, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_is_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tap_sent.py").write_text(TAP)
    monkeypatch.chdir(tmp_path)
    ref = reference("tap_sent.py")
    assert ref.text == str(tmp_path / "tap_sent.py")
    assert elsewhere(ref, tmp_path) == "[1, 2]"


def test_a_tap_of_a_module_goes_by_its_name_with_the_folder_it_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tap_named.py").write_text(TAP)
    monkeypatch.syspath_prepend(str(tmp_path))
    import tap_named  # type: ignore[import-not-found]

    ref = reference(tap_named.tap)
    assert (ref.text, ref.value) == ("tap_named:tap", b"")
    assert elsewhere(ref, tmp_path) == "[1, 2]"


def test_a_process_looks_for_new_modules_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With pyspark's archive on the path of its imports that takes a tenth of a second, and each task loads the tap."""
    (tmp_path / "tap_often.py").write_text(TAP)
    looks: list[None] = []
    ref = reference(tmp_path / "tap_often.py")
    monkeypatch.setattr("importlib.invalidate_caches", lambda: looks.append(None))
    assert [ref.load().name for _ in range(3)] == ["tap-sent"] * 3
    assert len(looks) == 1


@pytest.mark.spark
def test_a_tap_of_a_script_goes_by_value(tmp_path: Path):
    pytest.importorskip("pyspark")
    script = tmp_path / "script.py"
    send = """
    import base64
    from burler.spark import reference
    open("sent", "wb").write(base64.b64decode(reference(tap).partition(":")[2]))
    """
    script.write_text(TAP + dedent(send))
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ref = pickle.loads((tmp_path / "sent").read_bytes())
    assert not ref.text
    assert elsewhere(ref, tmp_path) == "[1, 2]"


@pytest.mark.spark
def test_a_function_that_holds_a_lock_is_refused_with_the_cure():
    pytest.importorskip("pyspark")
    lock = threading.Lock()
    tap = burler.tap("tap-held")

    @tap.sync("rows", schema={"properties": {"id": {"type": "integer"}}})
    def rows():
        with lock:
            return []

    with pytest.raises(UsageError, match=r"(?s)tap-held .*can't be sent.*lock.*Make it in the @tap\.client"):
        reference(tap)


def test_what_is_no_app_is_said_at_once(tmp_path: Path):
    with pytest.raises(AppError, match="no file, module or installed tap"):
        reference("tap_nowhere_at_all")


def test_a_tap_can_be_pickled_after_it_was_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tap_pickled.py").write_text(TAP)
    monkeypatch.syspath_prepend(str(tmp_path))
    from tap_pickled import tap  # type: ignore[import-not-found]

    first = run_tap(tap).records("rows")
    assert run_tap(pickle.loads(pickle.dumps(tap))).records("rows") == first == [{"id": 1}, {"id": 2}]
