"""stderr: METRIC lines as singer-python reads them, no secrets; stdout: messages and nothing else."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
from pathlib import Path

import pytest
from tapprocess import PYTHON, SMALL, burler, environment, python, write_tap

from burler.testing import canary
from support.cli import burler as in_process
from support.servers import serving

READER = """
import json, sys, warnings
warnings.simplefilter("ignore")  # singer-python's own imports
from singer import metrics
points = [metrics.parse(line.rstrip("\\n")) for line in sys.stdin]
print(json.dumps([[p.metric_type, p.metric, p.value, p.tags] for p in points if p]))
"""


def log_of(*args: str | Path, cwd: Path) -> list[str]:
    """The lines of stderr of a run, as they are."""
    done = subprocess.run(
        [PYTHON, "-m", "burler", "run", *args], cwd=cwd, env=environment(), capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def test_each_line_begins_with_its_time_in_utc(tmp_path: Path):
    begun = dt.datetime.now(dt.UTC)
    source = SMALL.replace("import burler", "import burler, logging").replace(
        "    for i", "    logging.getLogger('mine').warning('a line of mine')\n    for i"
    )
    lines = log_of(write_tap(tmp_path, source), cwd=tmp_path)
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING) \S", line), line
    times = [dt.datetime.fromisoformat(line.partition(" ")[0]) for line in lines]
    assert times == sorted(times)
    assert begun - dt.timedelta(milliseconds=1) <= times[0] <= times[-1] <= dt.datetime.now(dt.UTC)
    assert "WARNING a line of mine" in {line.partition(" ")[2] for line in lines}


def test_metric_lines_are_found_by_their_end(tmp_path: Path):
    """As programs that read logs of taps look for them."""
    lines = log_of(write_tap(tmp_path, SMALL), cwd=tmp_path)
    points = [json.loads(found[1]) for line in lines if (found := re.search(r"METRIC: (\{.*\})$", line))]
    assert [point["metric"] for point in points] == ["record_count", "job_duration", "job_duration"]


def test_singer_python_reads_our_metric_lines(tmp_path: Path):
    """It wants the level first; what stands before it is the time."""
    ended = burler("run", write_tap(tmp_path, SMALL), cwd=tmp_path)
    read = subprocess.run(
        [PYTHON, "-c", READER],
        input=ended.stderr,
        capture_output=True,
        text=True,
        check=True,
        env=environment(PYTHONWARNINGS="ignore"),
    )
    points = json.loads(read.stdout)
    assert len(points) == ended.stderr.count("METRIC") == 3
    assert points[0] == ["counter", "record_count", 10, {"endpoint": "rows"}]
    stream, whole = points[1], points[2]
    assert stream[:2] == whole[:2] == ["timer", "job_duration"]
    assert stream[3] == {"job_type": "stream", "stream": "rows", "status": "succeeded"}
    assert whole[3] == {"job_type": "sync", "status": "succeeded"}
    assert 0 <= stream[2] <= whole[2] < 60


ASKS = """
import burler
tap = burler.tap("tap-x", config_spec={"metrics": None} if OWN else None)

@tap.client
def client():
    return burler.http.Client("URL")

@tap.sync("rows", key_properties="id", schema=SCHEMA)
def rows(client, config):
    for page in range(3):
        client.get(f"/{page}", endpoint="/{page}")
    yield {"id": 1, "text": str(config.get("metrics"))}
"""


@pytest.fixture(scope="module")
def asks():
    """The tap, with a server to ask."""
    with serving(lambda asked: []) as server:
        yield ASKS.replace("URL", server.url)


@pytest.mark.parametrize(
    ("config", "flags", "lines"),
    [
        ({}, [], 0),
        ({"metrics": "requests"}, [], 3),
        ({}, ["--metrics", "requests"], 3),
        ({"metrics": "requests"}, ["--metrics", "streams"], 0),
    ],
)
def test_single_requests_have_metric_lines_only_where_they_are_asked_for(tmp_path, asks, config, flags, lines):
    (tmp_path / "config.json").write_text(json.dumps(config))
    tap = write_tap(tmp_path, asks.replace("OWN", "False"))
    ended = in_process("run", tap, "-c", "config.json", *flags, cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    assert ended.stderr.count('"metric":"http_request_duration"') == lines
    assert ended.stderr.count("METRIC: ") == lines + 3
    assert "rows: 3 requests" in ended.stderr


def test_a_tap_may_have_metrics_of_its_own(tmp_path: Path, asks: str):
    (tmp_path / "config.json").write_text('{"metrics": ["sessions"]}')
    tap = write_tap(tmp_path, asks.replace("OWN", "True"))
    ended = in_process("run", tap, "-c", "config.json", "--metrics", "requests", cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    assert [m["record"]["text"] for m in ended.messages if m["type"] == "RECORD"] == ["['sessions']"]
    assert ended.stderr.count('"metric":"http_request_duration"') == 3
    ended = in_process("run", write_tap(tmp_path, asks.replace("OWN", "False")), "-c", "config.json", cwd=tmp_path)
    assert ended.code == 2 and "setting 'metrics' must be text" in ended.stderr


def test_singer_python_writes_the_same_form(tmp_path: Path):
    source = "import singer, json\nwith singer.metrics.record_counter('rows') as c: c.increment(10)"
    theirs = python("-W", "ignore", "-c", source, cwd=tmp_path, PYTHONWARNINGS="ignore").stderr.splitlines()
    ours = burler("run", write_tap(tmp_path, SMALL), cwd=tmp_path).stderr.splitlines()
    mark = "INFO METRIC: "
    first = [json.loads(line.removeprefix(mark)) for line in theirs if line.startswith(mark)]
    second = [json.loads(line.removeprefix(mark)) for line in ours if line.startswith(mark)]
    assert first[0] == second[0]


def test_no_secret_is_in_the_tracebacks_of_what_nobody_catches(tmp_path: Path):
    source = """
    import asyncio, threading
    import burler
    tap = burler.tap("tap-x", config_spec=["token"])

    class Held:
        def __init__(self, text):
            self.text = text
        def __del__(self):
            raise ValueError(f"in __del__: {self.text}")

    class Odd(BaseException):
        pass

    @tap.sync("rows", key_properties="id", schema=SCHEMA)
    def rows(config):
        def refused():
            raise ValueError(f"in a thread: {config['token']}")
        def ends():
            raise SystemExit(1)
        for work in (refused, ends):
            thread = threading.Thread(target=work, name=work.__name__)
            thread.start()
            thread.join()
        Held(config["token"])

        async def fails():
            raise ValueError(f"in a task: {config['token']}")
        async def main():
            asyncio.create_task(fails())
            await asyncio.sleep(0.01)
        asyncio.run(main())
        yield {"id": 1}
    """
    tap, token = write_tap(tmp_path, source), canary("uncaught")
    (tmp_path / "config.json").write_text(json.dumps({"token": token}))
    ended = burler("run", tap, "--config", "config.json", cwd=tmp_path, PYTHONWARNINGS="default")
    assert ended.code == 0, ended.stderr
    assert token not in ended.stderr
    assert ended.lines("ERROR")[0] == "thread 'refused' was ended by an error"
    for fact in ("in a thread", "in __del__", "in a task"):
        assert f"ValueError: {fact}: ***" in ended.stderr
    assert ended.stderr.count("Traceback") == 3


def test_the_bytes_of_a_secret_are_in_no_log_and_no_report(tmp_path: Path):
    source = """
    import burler
    tap = burler.tap("tap-x", config_spec=["jwt", "url"])

    @tap.sync("rows", key_properties="id", schema=SCHEMA)
    def rows(config):
        yield {"id": 1}
        raw = config["jwt"].encode()
        port = config["url"].partition("ann:")[2].partition("/")[0]
        raise ValueError(f"{raw!r} {raw.hex()} {config['jwt']} 'ann:{port}' is no host, '{port}' is no port")
    """
    secret = f"pässwörd-{canary('bytes')}"
    config = {"jwt": secret, "url": "http://ann:se/cret@h/"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ended = in_process("run", write_tap(tmp_path, source), "-c", "config.json", "--report", "r.json", cwd=tmp_path)
    (told,) = json.loads((tmp_path / "r.json").read_text())["streams"][0]["errors"]
    assert told["message"] == "b'***' *** *** '***' is no host, *** is no port"
    assert f"ValueError: {told['message']}" in ended.stderr


def test_an_error_of_no_known_kind_shows_no_secret_either(tmp_path: Path):
    source = """
    import burler
    tap = burler.tap("tap-x", config_spec=["token"])

    class Odd(BaseException):
        pass

    @tap.client
    def client(config):
        raise Odd(config["token"])

    @tap.sync("rows", key_properties="id", schema=SCHEMA)
    def rows(client):
        yield {"id": 1}
    """
    tap, token = write_tap(tmp_path, source), canary("odd")
    (tmp_path / "config.json").write_text(json.dumps({"token": token}))
    ended = burler("run", tap, "--config", "config.json", cwd=tmp_path)
    assert ended.code == 1
    assert token not in ended.stderr and "Odd: ***" in ended.stderr


def test_stdout_has_messages_only(tmp_path: Path):
    source = """
    import atexit, logging, os, subprocess, sys, threading, time
    from sys import stdout as kept
    print("at import")
    kept.write("kept at import\\n")
    if __name__ != "__main__":  # else burler has not been asked yet
        os.system("echo a child at import")
    import burler
    tap = burler.tap("tap-x")

    def chat():
        for _ in range(20):
            print("thread")
            time.sleep(0.01)

    @tap.client
    def client():
        print("client")

    @tap.sync("rows", key_properties="id")
    def rows(client):
        threading.Thread(target=chat).start()
        logging.getLogger("mine").warning("a line of mine")
        for i in range(3):
            print("print")
            kept.write("kept\\n")
            sys.__stdout__.write("dunder\\n")
            os.write(1, b"os.write\\n")
            subprocess.run(["echo", "child"])
            yield {"id": i}

    @tap.schema("rows")
    def schema():
        print("schema")
        return SCHEMA

    atexit.register(lambda: print("at exit"))
    if __name__ == "__main__":
        tap.cli()
    """
    path = write_tap(tmp_path, source)
    for command in (["-m", "burler", "run", path], [path]):
        ended = python(*command, cwd=tmp_path)
        assert ended.code == 0, ended.stderr
        kinds = [m["type"] for m in ended.messages]
        assert kinds == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
        for text in ("client", "print", "kept", "dunder", "os.write", "child", "schema", "thread", "at exit"):
            assert text in ended.stderr, text
        assert "WARNING a line of mine" in ended.stderr
    for command in (["-m", "burler", "discover", path], [path, "--discover"]):
        ended = python(*command, cwd=tmp_path)
        assert json.loads(ended.stdout)["streams"][0]["tap_stream_id"] == "rows"


def test_what_a_thread_prints_while_the_process_ends_is_no_message(tmp_path: Path):
    source = """
    import threading
    import burler
    tap = burler.tap("tap-x")

    def chat():
        while threading.main_thread().is_alive():
            print("thread", flush=True)

    @tap.sync("rows", schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    def rows():
        threading.Thread(target=chat).start()
        yield {"id": 1}

    if __name__ == "__main__":
        tap.cli()
    """
    path = write_tap(tmp_path, source)
    for command in (["-m", "burler", "run", path], [path]):
        ended = python(*command, cwd=tmp_path)
        assert (ended.code, ended.messages[-1]["type"]) == (0, "STATE")
        assert "thread" in ended.stderr


SECRET = canary("config")
LEAKY = """
import logging, sys
import burler
tap = burler.tap("tap-x", config_spec=["access_token"])

@tap.client
def client(config):
    logging.getLogger("mine").warning("mine: %s", config["access_token"])
    if config.get("fail") == "client":
        raise ConnectionError("401 for " + config["access_token"])
    return config

@tap.sync("rows", key_properties="id")
def rows(client):
    yield {"id": 1}
    try:
        if client.get("fail") == "row":
            yield {"id": client["access_token"]}
        if client.get("fail") == "state":
            raise KeyError(client["nested"]["password"])
    except GeneratorExit:
        raise OSError("closing " + client["access_token"])
    raise RuntimeError("401 for " + client["access_token"])

tap.schema("rows", SCHEMA)
"""


@pytest.mark.parametrize(
    ("fail", "level"),
    [("client", "DEBUG"), ("row", "INFO"), ("row", "DEBUG"), ("rows", "INFO"), ("state", "DEBUG")],
)
def test_secrets_never_show(tmp_path: Path, fail: str, level: str):
    path = write_tap(tmp_path, LEAKY)
    config = {"access_token": SECRET, "nested": {"password": SECRET + "2"}, "fail": fail}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ended = burler("run", path, "--config", "config.json", cwd=tmp_path, BURLER_LOG_LEVEL=level)
    assert ended.code == 1
    assert SECRET not in ended.stderr
    assert "***" in ended.stderr
    assert len(ended.lines("CRITICAL")) == 1
    assert ("Traceback" in ended.stderr) == (level == "DEBUG")


def test_secrets_never_show_with_a_logging_config_of_the_users(tmp_path: Path):
    (tmp_path / "log.conf").write_text(
        "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=f\n[logger_root]\nlevel=DEBUG\nhandlers=h\n"
        "[handler_h]\nclass=StreamHandler\nargs=(sys.stderr,)\nformatter=f\n[formatter_f]\nformat=MINE %(message)s\n"
    )
    (tmp_path / "config.json").write_text(json.dumps({"access_token": SECRET}))
    path = write_tap(tmp_path, LEAKY)
    ended = burler("run", path, "--config", "config.json", cwd=tmp_path, LOGGING_CONF_FILE=str(tmp_path / "log.conf"))
    assert "MINE stream 'rows': start" in ended.stderr
    assert "MINE rows" in ended.stderr
    assert "RuntimeError: 401 for ***" in ended.stderr
    assert SECRET not in ended.stderr


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        (None, "no such file"),
        ("[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=\n[logger_root]\nhandlers=h\n", "'handler_h'"),
        ("nonsense", "no section headers"),
    ],
)
def test_a_logging_config_that_is_wrong_is_one_warning(tmp_path: Path, conf: str | None, says: str):
    """The run goes on, and writes its report."""
    if conf is not None:
        (tmp_path / "log.conf").write_text(conf)
    source = (
        "import burler\ntap = burler.tap('tap-x')\ntap.sync('rows', schema={'properties': {'id': {}}})(lambda: [])\n"
    )
    path = write_tap(tmp_path, source)
    ended = burler("run", path, "--report", "report.json", cwd=tmp_path, LOGGING_CONF_FILE="log.conf")
    assert ended.code == 0
    said = "".join(line for line in ended.stderr.splitlines(True) if not line.startswith("INFO"))
    assert said.startswith("WARNING LOGGING_CONF_FILE: log.conf can't set up the log: ")
    assert says in said and "Traceback" not in said
    assert json.loads((tmp_path / "report.json").read_text())["status"] == "succeeded"


def test_a_critical_line_says_where_and_is_short(tmp_path: Path):
    source = """
    import burler
    tap = burler.tap("tap-x")
    def fetch():
        raise ValueError("<html>\\n" + "a page of many lines\\n" * 500)
    @tap.sync("rows", key_properties="id")
    def rows():
        fetch()
        yield {}
    tap.schema("rows", SCHEMA)
    """
    ended = in_process("run", write_tap(tmp_path, source), cwd=tmp_path)
    assert ended.code == 1
    text = ended.one_critical()
    assert text.startswith("CRITICAL rows (tap_x.py:5): ValueError: <html>")
    assert len(text) < 800


def test_several_broken_streams_have_one_critical_line_each(tmp_path: Path):
    source = """
    import burler
    tap = burler.tap("tap-x")
    for name in ("a", "b", "c"):
        def rows(name=name):
            if name != "b":
                raise ValueError("no " + name)
            return [{"id": 1}]
        tap.sync(name, key_properties="id", replication_key="id")(rows)
        tap.schema(name, SCHEMA)
    """
    ended = in_process("run", write_tap(tmp_path, source), cwd=tmp_path)
    assert ended.code == 1
    assert [line.split(" ")[0] for line in ended.lines("CRITICAL")] == ["a", "c"]
    assert ended.messages[-1] == {"type": "STATE", "value": {"bookmarks": {"b": {"id": 1}}}}
