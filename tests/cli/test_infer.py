"""``burler infer``: records or messages in, a schema out."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tapprocess import write_tap

from support.cli import Ended, burler, environment, python, without_times

ID = {"type": "object", "properties": {"id": {"type": "integer"}}}


def infer(*args: str | Path, cwd: Path, stdin: bytes = b"", **env: str) -> Ended:
    return burler("infer", *args, cwd=cwd, stdin=stdin, **env)


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def record(stream: str, **fields: object) -> dict[str, object]:
    return {"type": "RECORD", "stream": stream, "record": fields}


@pytest.mark.parametrize(
    "stdin",
    [
        b'{"id": 1}\n{"id": 2}\n',
        b'\xef\xbb\xbf{"id": 1}\r\n{"id": 2}',
        b'[{"id": 1},\n {"id": 2}]',
        b'{\n  "id": 1\n}\n',
        lines(
            {"type": "SCHEMA", "stream": "a", "schema": {}, "key_properties": []},
            record("a", id=1),
            {"type": "STATE", "value": {}},
        ),
        gzip.compress(b'{"id": 1}\n') + gzip.compress(b'{"id": 2}\n'),
    ],
    ids=["lines", "crlf and bom", "array", "pretty", "messages", "gzip members"],
)
def test_what_comes_in(tmp_path, stdin):
    ended = infer(cwd=tmp_path, stdin=stdin)
    assert (ended.code, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == ID
    assert ended.stdout.startswith(b'{\n  "type"')  # pretty, one line end
    assert ended.stdout.endswith(b"}\n")


def test_several_files_are_one_sample(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines({"id": 1}))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'[{"id": null, "at": "2024-01-02T03:04:05Z"}]'))
    ended = infer("a.jsonl", "b.json.gz", "-", cwd=tmp_path, stdin=lines({"id": 1.5}))
    assert json.loads(ended.stdout)["properties"] == {
        "id": {"type": ["null", "number"]},
        "at": {"type": "string", "format": "date-time"},
    }


def test_streams(tmp_path):
    stdin = lines(record("a", id=1), record("b", id="x"), record("a", id=2))
    both = json.loads(infer(cwd=tmp_path, stdin=stdin).stdout)
    assert both == {"a": ID, "b": {"type": "object", "properties": {"id": {"type": "string"}}}}
    assert json.loads(infer("--stream", "a", cwd=tmp_path, stdin=stdin).stdout) == ID
    ended = infer("--stream", "c", cwd=tmp_path, stdin=stdin)
    assert ended.code == 1
    assert "it holds no RECORD of stream 'c'. It has: a, b." in ended.one_critical()
    assert ended.stdout == b""


def test_options(tmp_path):
    pages = lines({"data": {"items": [{"id": 1}]}}, {"data": {"items": [{"id": 2}, {"id": "x"}]}}, {"data": None})
    assert json.loads(infer("--rows", "data.items", "--limit", "2", cwd=tmp_path, stdin=pages).stdout) == ID
    nullable = json.loads(infer("--nullable", cwd=tmp_path, stdin=lines({"id": 1})).stdout)
    assert nullable["properties"]["id"] == {"type": ["null", "integer"]}
    as_map = json.loads(infer("--map-keys", "1", cwd=tmp_path, stdin=lines({"m": {"a": 1, "b": 2}})).stdout)
    assert as_map["properties"]["m"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    dates = lines({"id": "2024-01-02"})
    assert "format" not in infer("--formats", "none", cwd=tmp_path, stdin=dates).stdout.decode()
    raw = json.loads(infer("--input", "records", cwd=tmp_path, stdin=lines(record("a", id=1))).stdout)
    assert list(raw["properties"]) == ["type", "stream", "record"]


def test_limit_counts_in_each_stream(tmp_path):
    stdin = lines(record("a", id=1), record("a", id="x"), record("b", id=1), record("b", id=None))
    assert json.loads(infer("--limit", "1", cwd=tmp_path, stdin=stdin).stdout) == {"a": ID, "b": ID}


def test_what_was_never_seen_is_said(tmp_path):
    ended = infer(cwd=tmp_path, stdin=lines({"id": 1, "x": None, "tags": []}))
    assert json.loads(ended.stdout)["properties"]["x"] == {}
    assert ended.lines("WARNING") == [
        "no value was seen of x, tags[]; they are left open ({}): write their types by hand if you know them"
    ]
    ended = infer(cwd=tmp_path, stdin=lines({"id": 1, "isbn": None}))
    assert ended.lines("WARNING") == [
        "no value was seen of isbn; it is left open ({}): write its type by hand if you know it"
    ]


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"", "infer: stdin: it holds no record"),
        (b"[]", "it holds no record"),
        (lines({"type": "STATE", "value": {}}), "it holds no RECORD."),
        (b'{"id": 1}\n{"id": 1', "stdin, line 2: the input ends in the middle of this line"),
        (b'{"id": 1}\n{id: 1}\n{"id": 1}\n', "stdin, line 2, column 2: not JSON"),
        (b"id,name\n", "stdin, line 1"),
        (b'{"id": 1}\n[1]\n', "stdin, line 2: a record is an array"),
        (b'{"id": {"b": "\\ud800"}}\n', "stdin, line 1: field 'id.b': text that UTF-8 can't hold"),
        (gzip.compress(lines({"id": 1}), mtime=0)[:-9], "stdin, it is cut off: its gzip data"),
    ],
)
def test_input_that_is_broken(tmp_path, stdin, said):
    ended = infer(cwd=tmp_path, stdin=stdin)
    assert (ended.code, ended.stdout) == (1, b"")
    assert said in ended.one_critical()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["none.jsonl"], "none.jsonl can't be read: No such file"),
        (["."], ". can't be read: Is a directory"),
        (["--rows", "a..b"], "is no path"),
        (["--formats", "emial"], "'emial' is not looked for"),
        (["--limit", "0"], "--limit"),
        (["--input", "csv"], "--input"),
        (["--map-keys", "x"], "--map-keys"),
    ],
)
def test_wrong_use(tmp_path, args, said):
    ended = infer(*args, cwd=tmp_path, stdin=lines({"id": 1}))
    assert (ended.code, ended.stdout) == (2, b"")
    assert said in ended.one_critical()


def test_a_stream_may_not_be_chosen_of_records(tmp_path):
    ended = infer("--stream", "a", cwd=tmp_path, stdin=lines({"id": 1}))
    assert ended.code == 1
    assert "these are records, not a tap's messages" in ended.one_critical()


def test_of_a_tap_and_of_a_lake(tmp_path):
    """A tap's own output gives back its schema's types; so do the files of a lake."""
    write_tap(
        tmp_path,
        """
        import burler
        tap = burler.tap("tap-small")
        @tap.sync("rows", key_properties="id")
        def rows():
            yield from ({"id": i, "text": None if i else "x"} for i in range(5))
        tap.schema("rows", SCHEMA)
        """,
    )
    wanted = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}},
    }
    out = burler("run", "tap_x.py", cwd=tmp_path)
    assert json.loads(infer("--stream", "rows", cwd=tmp_path, stdin=out.stdout).stdout) == wanted
    burler("run", "tap_x.py", "--sink", "lake:lake", cwd=tmp_path)
    (file,) = (tmp_path / "lake").rglob("*.singer.gz")
    assert json.loads(infer(file, cwd=tmp_path).stdout) == wanted
    assert json.loads(infer("--stream", "rows", cwd=tmp_path, stdin=file.read_bytes()).stdout) == wanted


def test_a_writer_that_never_ends_is_left_after_the_limit(tmp_path):
    writer = "import sys\nwhile True: sys.stdout.write('{\"id\": 1}\\n')"
    command = f"{sys.executable} -c {_quoted(writer)} 2>/dev/null | {sys.executable} -m burler infer --limit 5"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == ID


def test_a_reader_that_goes_away(tmp_path):
    wide = tmp_path / "wide.json"
    wide.write_text(json.dumps({f"field{i}": i for i in range(9000)}))  # far more than a pipe holds
    command = f"{sys.executable} -m burler infer wide.json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=60, check=True
    )
    assert b"Traceback" not in done.stderr
    assert done.stdout.split() == [b"{", b"4"]
    assert b"the reader of stdout has gone" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_is_one_line(tmp_path):
    command = [sys.executable, "-m", "burler", "infer"]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 - what runs behind & ignores it
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=environment(), preexec_fn=heard) as started:
        assert started.stdin is not None and started.stderr is not None
        started.stdin.write(b'{"id": 1}\n' * 100_000)  # more than a pipe holds: it reads by now
        started.stdin.flush()
        started.send_signal(signal.SIGINT)
        said = started.stderr.read()
        started.stdin.close()
    # The first line ends that in which the terminal shows ^C.
    assert started.returncode == 130
    assert without_times(said.decode()) == "\nWARNING stopped by SIGINT (Ctrl-C) before it was done\n"


@pytest.mark.parametrize("form", ["lines", "array"])
def test_memory_stays_flat(tmp_path, form):
    """25 MB take no more memory than 3 MB do."""

    def peak(megabytes: int) -> int:
        row = json.dumps({"id": 1, "text": "x" * 900, "map": {"a": [1, 2]}})
        part = row + ("\n" if form == "lines" else ",\n")
        path = tmp_path / f"{megabytes}.json"
        with path.open("w") as file:
            file.write("[" if form == "array" else "")
            for _ in range(megabytes * 1000):
                file.write(part)
            file.write(row + "]" if form == "array" else row + "\n")
        measured = (
            "import resource, subprocess, sys\n"
            "command = [sys.executable, '-m', 'burler', 'infer', sys.argv[1]]\n"
            "subprocess.run(command, check=True, stdout=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        )
        done = python("-c", measured, path, cwd=tmp_path)
        assert done.code == 0, done.stderr
        return int(done.stdout)

    assert peak(25) < peak(3) + 10_000  # KiB


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_help_says_what_it_does(tmp_path):
    text = infer("--help", cwd=tmp_path).stdout.decode()
    for option in ("--stream", "--rows", "--limit", "--input", "--nullable", "--map-keys", "--formats"):
        assert option in text
