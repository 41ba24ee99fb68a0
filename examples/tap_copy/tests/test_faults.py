"""What goes wrong while COPY runs: no message names a file that is not whole, and none stays under its final name."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from taking import batched, expanded, messages

import tap_copy
from burler.testing import canary, run_tap
from support.clocks import until
from tap_copy import tap

EXAMPLES = Path(tap_copy.__file__).parents[1]
LIMIT_SECONDS = 60
SLOW = """
create view slow as select case when pg_sleep(0.03) is null then 0 else i end as id, repeat('x', 400000) as text
from generate_series(1, 100000) as i
"""


class Tap:
    """The tap as a process, with BATCH on."""

    def __init__(self, base, folder, **more):
        config = folder / "config.json"
        config.write_text(json.dumps({**base.config, "batch_config": {"storage": {"root": str(base.folder)}}}))
        self._out, self._said = folder / "out.jsonl", folder / "said.txt"
        with self._out.open("wb") as out, self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tap_copy", "--config", str(config)],
                stdout=out, stderr=said, cwd=folder, env={**os.environ, "PYTHONPATH": str(EXAMPLES)}, **more,
            )  # fmt: skip

    def ended(self):
        """Its exit code, its messages, and what it said."""
        code = self.process.wait(LIMIT_SECONDS)
        text = self._out.read_text()
        return code, [json.loads(line) for line in text.splitlines()], self._said.read_text()


@pytest.fixture
def start(base, tmp_path):
    """Starts the tap; it ends with the test."""
    started = []

    def begin(**more):
        started.append(Tap(base, tmp_path, **more))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def is_writing(base):
    """Whether the file of the slow view grows under its hidden name."""
    return any(name.startswith(".tmp-") and "slow" in name and _size(base.folder / name) for name in base.files())


def _size(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_tap_that_is_killed_leaves_no_file_that_looks_whole(base, start, tmp_path):
    base.do(SLOW)
    one = start()
    until(lambda: is_writing(base), "a file grows")
    one.process.kill()
    code, out, _said = one.ended()
    assert code == -signal.SIGKILL and [m["type"] for m in out if m["type"] == "BATCH"] == []
    (left,) = base.files()
    assert left.startswith(".tmp-")
    base.do("drop view slow", "create table t as select 1 as id")
    run = batched(base)
    assert expanded(run, "public.t") == [{"id": 1}]
    assert [name for name in base.files() if name.startswith(".tmp-")] == []


def test_a_tap_that_is_told_to_stop_leaves_nothing_half(base, start):
    base.do(SLOW)
    one = start()
    until(lambda: is_writing(base), "a file grows")
    one.process.terminate()
    code, out, _said = one.ended()
    assert code == 0 and out[-1]["type"] == "STATE"
    assert not [m for m in out if m["type"] == "BATCH"] and base.files() == []


def test_a_connection_that_is_lost_ends_the_stream_and_leaves_nothing(base, start):
    base.do(SLOW, "create table also as select 1 as id")
    one = start()
    until(lambda: is_writing(base), "a file grows")
    ended = "select pg_terminate_backend(pid) from pg_stat_activity"
    assert base.ask(f"{ended} where usename = '{base.reader}' and query ~ 'copy.*slow'") == [(True,)]
    code, out, said = one.ended()
    assert code == 1 and "stream 'public.slow': " in said and "terminating connection" in said
    batches = [m for m in out if m["type"] == "BATCH"]
    assert [m["stream"] for m in batches] == ["public.also"]
    assert base.files() == [Path(batches[0]["manifest"][0]).name]
    assert base.password not in said and "Traceback" not in said


def test_a_full_disk_ends_the_stream_and_leaves_nothing(base, start):
    base.do("create table t as select i as id, repeat('x', 1000) as text from generate_series(1, 6000) i")
    most = 3_000_000
    one = start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    code, out, said = one.ended()
    assert code == 1 and "File too large" in said and "Traceback" not in said
    assert not [m for m in out if m["type"] == "BATCH"]
    assert base.files() == []
    assert all("version" not in bookmark for m in out if m["type"] == "STATE" for bookmark in _bookmarks(m))
    assert messages(batched(base), "BATCH")[0]["size"] == 6000


def _bookmarks(state):
    return state["value"].get("bookmarks", {}).values()


@pytest.mark.parametrize("batch", [True, False])
def test_a_server_that_is_not_there_is_an_error_without_the_password(base, batch, caplog):
    from tap_copy import server

    password = canary("wrong-password")
    base.config["database_url"] = f"postgresql://{base.reader}:{password}@127.0.0.1:{server.free_port()}/books"
    with pytest.raises(Exception, match="Connection refused") as refused:
        batched(base) if batch else run_tap(tap, base.config)
    assert password not in str(refused.value) and password not in caplog.text


def test_a_wrong_password_is_an_error_without_it(base):
    password = canary("wrong-password")
    base.config["database_url"] = base.config["database_url"].replace(base.password, password)
    with pytest.raises(Exception, match="password authentication failed") as refused:
        batched(base)
    assert password not in str(refused.value)
