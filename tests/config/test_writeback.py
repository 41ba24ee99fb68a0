"""What a tap changes in its config goes back into its files: only that, atomically, nothing from elsewhere."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from burler.config import ConfigFiles, load, parse_spec, replace_file


@pytest.fixture
def tap(tmp_path):
    """Files and environment in, then the config as functions get it and the object that saves it."""

    def tap(*contents, spec=None, **environment):
        files = []
        for i, content in enumerate(contents):
            path = tmp_path / f"{i}.json"
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            files.append(path)
        form = parse_spec(spec, place="p", folder=None)
        loaded = load(files, environment=environment, tap_name="tap-x", form=form)
        config = form.check(loaded.config, tap_name="tap-x")
        return config, ConfigFiles(loaded, config), files

    return tap


def held(path):
    return json.loads(path.read_bytes())


# ---- which file, which key ------------------------------------------------------------------------


def test_nothing_changed_nothing_written(tap):
    config, files, (path,) = tap(b'{ "a":1 }', spec={"a": 1})
    before = path.stat()
    assert files.save_if_changed(config) is False
    config["a"] = 1
    assert files.save_if_changed(dict(config)) is False
    assert path.stat().st_ino == before.st_ino and path.read_bytes() == b'{ "a":1 }'


def test_a_call_without_news_does_not_touch_the_file(tap, caplog):
    config, files, (path,) = tap({"a": 1})
    config["a"] = 2
    assert files.save_if_changed(config)
    path.unlink()
    assert files.save_if_changed(config) is False
    assert not caplog.text and not path.exists()


def test_a_change_goes_into_the_last_file_that_has_the_key(tap):
    config, files, (one, two) = tap({"a": 1, "token": "old", "b": 1}, {"a": 2, "more": [1]})
    config["token"] = "new"
    config["a"] = 3
    assert files.save_if_changed(config) is True
    assert held(one) == {"a": 1, "token": "new", "b": 1}
    assert held(two) == {"a": 3, "more": [1]}
    assert files.save_if_changed(config) is False
    assert load([one, two], environment={}, tap_name="tap-x").config == config


def test_nested_keys_go_where_they_stand_and_new_ones_beside_their_like(tap):
    config, files, (one, two, three) = tap({"oauth": {"id": 1, "refresh": "r0"}}, {"oauth": {"secret": "s"}}, {"z": 1})
    config["oauth"]["refresh"] = "r1"
    config["oauth"]["access"] = "a1"
    config["new"] = {"x": 1}
    assert files.save_if_changed(config)
    assert held(one) == {"oauth": {"id": 1, "refresh": "r1"}}
    assert held(two) == {"oauth": {"secret": "s", "access": "a1"}}
    assert held(three) == {"z": 1, "new": {"x": 1}}


def test_a_key_that_is_taken_out_goes_from_every_file(tap):
    config, files, (one, two) = tap({"a": 1, "once": "x"}, {"once": "y", "deep": {"once": 1, "b": 2}})
    del config["once"]
    del config["deep"]["once"]
    assert files.save_if_changed(config)
    assert (held(one), held(two)) == ({"a": 1}, {"deep": {"b": 2}})


def test_an_object_that_was_hidden_does_not_come_back(tap):
    config, files, (one, two) = tap({"a": {"x": 1}, "b": 1}, {"a": 5})
    config["a"] = {"y": 2}
    assert files.save_if_changed(config)
    assert (held(one), held(two)) == ({"b": 1}, {"a": {"y": 2}})
    assert load([one, two], environment={}, tap_name="tap-x").config == config


def test_defaults_and_environment_are_never_written_into_a_file(tap):
    schema = {"type": "object", "properties": {"n": {"default": 5}, "t": {"type": "string"}, "db": {"type": "object"}}}
    config, files, (path,) = tap(
        {"t": "old", "db": {"host": "h"}}, spec=schema, TAP_X_DB__PASSWORD="env", TAP_X_E="env"
    )
    assert config == {"t": "old", "n": 5, "e": "env", "db": {"host": "h", "password": "env"}}
    config["t"] = "new"
    config["db"]["host"] = "g"
    assert files.save_if_changed(config)
    assert held(path) == {"t": "new", "db": {"host": "g"}}
    config["n"] = 6
    assert files.save_if_changed(config)
    assert held(path) == {"t": "new", "db": {"host": "g"}, "n": 6}


def test_a_changed_key_of_the_environment_is_one_warning(tap, caplog):
    config, files, (path,) = tap({"a": 1, "token": "file"}, TAP_X_TOKEN="first-env")
    with caplog.at_level(logging.INFO, logger="burler"):
        for token in ("second", "third", "fourth"):
            config["token"] = token
            assert files.save_if_changed(config) is False
    assert held(path) == {"a": 1, "token": "file"}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "TAP_X_TOKEN" in record.getMessage()
    assert "the next run begins with the variable's value" in record.getMessage()
    assert not {"first-env", "second", "third"} & set(record.getMessage().split())
    config["a"] = 2
    assert files.save_if_changed(config) and held(path) == {"a": 2, "token": "file"}


def test_an_object_replaced_by_something_else_takes_no_value_of_the_environment_along(tap, caplog):
    config, files, (path,) = tap({"db": {"host": "h"}}, TAP_X_DB__PASSWORD="env-secret")
    config["db"] = ["env-secret"]
    files.save_if_changed(config)
    assert held(path) == {"db": {"host": "h"}} and "TAP_X_DB__PASSWORD" in caplog.text


def test_without_a_file_there_is_one_warning(tap, caplog):
    config, files, _ = tap(TAP_X_A="1")
    config["token"] = "t1"
    assert not files.save_if_changed(config)
    config["token"] = "t2"
    assert not files.save_if_changed(config)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no --config file to save it in" in caplog.text


def test_what_json_cannot_hold(tap, caplog):
    config, files, (path,) = tap({"a": 1, "token": "x"})
    config["client"] = object()
    config["token"] = "y"
    assert files.save_if_changed(config)
    assert held(path) == {"a": 1, "token": "y"}
    assert "'client' what is no JSON value" in caplog.text
    config["loop"] = config
    config["token"] = "z"
    assert not files.save_if_changed(config) and "CRITICAL" in caplog.text
    del config["loop"]
    assert files.save_if_changed(config) and held(path)["token"] == "z"


# ---- the text of the file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{\n    "n": 1.10,\n    "t": "a",\n    "e": 1E3\n}\n',
         b'{\n    "n": 1.10,\n    "t": "b",\n    "e": 1E3\n}\n'),
        (b'{"n":1.10,"t":"a","b":[1,  2]}', b'{"n":1.10,"t":"b","b":[1,  2]}'),
        (b'{"t": "a", "big": 123456789012345678901234}\n', b'{"t": "b", "big": 123456789012345678901234}\n'),
        (b'\xef\xbb\xbf{\r\n\t"x": {\r\n\t\t"y": 1\r\n\t},\r\n\t"t": "a"\r\n}',
         b'\xef\xbb\xbf{\r\n\t"x": {\r\n\t\t"y": 1\r\n\t},\r\n\t"t": "b"\r\n}'),
        (b"{}", b'{\n  "t": "b"\n}'),
        (b'{"\\u00e9": "\\u00e9"}', b'{"\xc3\xa9": "\\u00e9", "t": "b"}'),
    ],
)  # fmt: skip
def test_all_else_stays_as_it_is_written(tap, before, after):
    config, files, (path,) = tap(before)
    config["t"] = "b"
    assert files.save_if_changed(config)
    assert path.read_bytes() == after


def test_nested_edits_keep_the_form(tap):
    before = b'{\n  "o": {\n    "id": 1,\n    "t": "a"\n  },\n  "p": {"q": 1},\n  "z": 1\n}\n'
    config, files, (path,) = tap(before)
    config["o"] |= {"t": "b", "new": {"k": [1]}}
    config["p"]["r"] = 2
    del config["z"]
    config["m"] = {"n": 5}
    assert files.save_if_changed(config)
    assert path.read_text() == (
        '{\n  "o": {\n    "id": 1,\n    "t": "b",\n    "new": {\n      "k": [\n        1\n      ]\n    }\n  },\n'
        '  "p": {"q": 1, "r": 2},\n  "m": {\n    "n": 5\n  }\n}\n'
    )


def test_what_another_process_changed_meanwhile_stays(tap):
    config, files, (path,) = tap({"a": 1, "token": "t0"})
    path.write_text('{"a": 2, "token": "t0", "b": "new"}')
    config["token"] = "t1"
    assert files.save_if_changed(config)
    assert held(path) == {"a": 2, "token": "t1", "b": "new"}


# ---- the file itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o604])
def test_mode_bits_stay(tap, mode):
    config, files, (path,) = tap({"a": 1})
    path.chmod(mode)
    config["a"] = 2
    assert files.save_if_changed(config) and stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_a_link(tap, tmp_path):
    (tmp_path / "real").mkdir()
    config, _files, (path,) = tap({"a": 1})
    target = path.rename(tmp_path / "real" / "c.json")
    path.symlink_to("real/c.json")
    loaded = load([path], environment={}, tap_name="tap-x")
    files = ConfigFiles(loaded, config)
    config["a"] = 2
    assert files.save_if_changed(config)
    assert path.is_symlink() and held(target) == {"a": 2}
    assert [item.name for item in (tmp_path / "real").iterdir()] == ["c.json"]


# Only root may give files away or become somebody else. For all others these tests are not there: a skipped test counts
# as one that failed where CI=true, and nobody could mend that.
if os.geteuid() == 0:

    def test_the_owner_stays(tap):
        config, files, (path,) = tap({"a": 1})
        os.chown(path, 12345, 23456)
        path.chmod(0o640)
        config["a"] = 2
        assert files.save_if_changed(config)
        now = path.stat()
        assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (12345, 23456, 0o640)


def test_rights_of_a_group_that_cannot_be_kept_are_left_out(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text("old")
    path.chmod(0o660)
    theirs = os.stat_result((*path.stat()[:5], 54321, *path.stat()[6:]))

    def denied(fd, uid, gid):
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(Path, "stat", lambda self, **_kwargs: theirs)
    replace_file(path, b"new")
    monkeypatch.undo()
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_new_content_is_at_no_moment_more_readable_than_the_old(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text("old")
    path.chmod(0o600)
    seen = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (seen.extend(p.stat().st_mode & 0o777 for p in tmp_path.iterdir()), real(fd))
    )
    old = os.umask(0)
    try:
        real_open = os.open

        def opened(name, *args, **kwargs):
            fd = real_open(name, *args, **kwargs)
            seen.append(os.fstat(fd).st_mode & 0o077 if str(name).endswith(".tmp") else 0)
            return fd

        monkeypatch.setattr(os, "open", opened)
        replace_file(path, b"new")
    finally:
        os.umask(old)
    assert seen and set(seen) <= {0o600, 0}


def test_a_new_file_has_the_usual_rights(tmp_path):
    old = os.umask(0o027)
    try:
        replace_file(tmp_path / "new", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


# ---- what goes wrong ------------------------------------------------------------------------------


def test_a_failure_is_said_once_and_tried_again(tap, caplog, monkeypatch):
    config, files, (path,) = tap({"token": "secret-0"})
    calls = []

    def full(*_paths):
        calls.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        for token in ("secret-1", "secret-1", "secret-2"):
            config["token"] = token
            assert files.save_if_changed(config) is False
        assert len(calls) == 2
        files.save_if_changed(config, last=True)
        assert len(calls) == 3
    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    assert "No space left on device: what the tap changed in 'token' is NOT SAVED" in record.getMessage()
    assert "secret" not in record.getMessage()
    assert held(path) == {"token": "secret-0"}
    assert files.save_if_changed(config, last=True) is True and held(path) == {"token": "secret-2"}


def test_a_file_that_is_gone_or_broken_is_left_alone(tap, caplog, tmp_path):
    config, files, (one, two) = tap({"a": 1}, {"b": 1})
    one.unlink()
    two.write_text("{broken")
    config |= {"a": 2, "b": 2}
    assert not files.save_if_changed(config)
    assert f"config file {one} is gone: what the tap changed in 'a' is NOT SAVED" in caplog.text
    assert f"config file {two} is not JSON: " in caplog.text
    assert not one.exists() and two.read_text() == "{broken" and len(list(tmp_path.iterdir())) == 1


def test_a_pipe_is_no_place_to_write_to(caplog, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=('{"token": "a"}',))
    writer.start()
    loaded = load([fifo], environment={}, tap_name="tap-x")
    writer.join(10)
    config = dict(loaded.config)
    files = ConfigFiles(loaded, config)
    config["token"] = "b"
    assert not files.save_if_changed(config) and "is no plain file" in caplog.text


# ---- other users, several processes, kill -9 ------------------------------------------------------


def saver(*jobs):
    """Run savers.py for each job, side by side; what they print."""
    script = str(Path(__file__).with_name("savers.py"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([sys.executable, script, *map(str, job)], **pipes) for job in jobs]
    try:
        said = [process.communicate(timeout=60) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert [process.returncode for process in running] == [0] * len(jobs), said
    return [out.strip() for out, _errors in said]


if os.geteuid() == 0:  # see above

    @pytest.mark.parametrize(
        ("folder", "file", "saved"), [("755", "600", "True"), ("755", "400", "False"), ("555", "600", "False")]
    )
    def test_rights_are_respected(folder, file, saved):
        with tempfile.TemporaryDirectory(dir="/tmp") as top:
            Path(top).chmod(0o755)
            path = Path(top) / "in" / "c.json"
            path.parent.mkdir()
            path.write_text('{"a": 1}')
            assert saver(("nobody", path, folder, file)) == [saved]
            assert held(path) == {"a": 2 if saved == "True" else 1}


def test_two_taps_with_one_file_lose_nothing_of_each_other(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"a": 0, "b": 0, "c": "kept"}')
    saver(*(("count", path, key, 200) for key in "ab"))
    assert held(path) == {"a": 200, "b": 200, "c": "kept"}


def test_kill_9_leaves_a_whole_file(tmp_path):
    saver(("storm", tmp_path / "c.json", 25, 1))  # looks at the file after every kill
    assert held(tmp_path / "c.json")["token"] > 0


@pytest.mark.nightly
def test_kill_9_leaves_a_whole_file_for_long(tmp_path):
    saver(("storm", tmp_path / "c.json", 200, 2))
    assert held(tmp_path / "c.json")["token"] > 0


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "half \ud800", {"deep": [float("-inf")]}])
def test_what_is_no_json_never_reaches_the_file(tap, caplog, value):
    config, files, (path,) = tap({"a": 1})
    before = path.read_bytes()
    config["x"] = value
    assert not files.save_if_changed(config)
    assert path.read_bytes() == before
    assert "what is no JSON value" in caplog.text


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0)])
def test_equal_in_python_is_another_value_in_json(tap, old, new):
    config, files, (path,) = tap({"a": old})
    config["a"] = new
    assert files.save_if_changed(config)
    assert type(held(path)["a"]) is type(new)


def test_file_and_folder_are_made_durable(tap, monkeypatch):
    config, files, _ = tap({"a": 1})
    kinds = []
    monkeypatch.setattr(os, "fsync", lambda fd: kinds.append(stat.S_ISDIR(os.fstat(fd).st_mode)))
    config["a"] = 2
    assert files.save_if_changed(config)
    assert kinds == [False, True]


def test_leftovers_of_killed_writers_go(tap):
    config, files, (path,) = tap({"a": 1})
    old, young, other = (path.parent / f".{name}.0123456789a{i}.tmp" for i, name in enumerate([path.name] * 2 + ["x"]))
    for item in (old, young, other):
        item.write_text("{}")
        os.utime(item, (1, 1) if item != young else None)
    config["a"] = 2
    assert files.save_if_changed(config)
    assert [item.exists() for item in (old, young, other)] == [False, True, True]
