"""Old batch files go, and what killed runs have left; nothing else does."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ftp_servers import ftp_server
from piped import SCHEMA, config, packed, record
from stored_files import NAME, OTHER, nobody, stored

from burler.batch import prune
from burler.errors import ConfigError, StorageError, UsageError
from support.cli import burler
from support.internals import batch_config, batch_storage

NOW = 1_800_000_000.0
DAY = 86_400.0
HIDDEN = f".tmp-{'0123456789abcdef'}-{NAME}"


def put(path, age_seconds, content=b"rows"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOW - age_seconds, NOW - age_seconds))
    return path


def pruned(root, days=7.0, **more):
    return prune(str(root), older_than_seconds=days * DAY, now=lambda: NOW, **more)


def test_names_that_runs_make_are_known_again(tmp_path):
    """Whatever their streams are called, and however their files are written and packed."""
    streams = ["contacts", "ünï cödé/x", "a--b", "s" * 300, "x-0123456789ab-00001.jsonl", "."]
    for form, compression in [
        *((form, packing) for form in ("jsonl", "csv") for packing in ("none", "gzip", "zstd")),
        ("parquet", "zstd"),
        ("arrow", "none"),
    ]:
        storage = {"root": str(tmp_path), "prefix": "crm-"}
        given = config(tmp_path, form, compression, storage=storage)
        schemas = [{**SCHEMA, "stream": stream} for stream in streams]
        assert packed(given, *schemas, *(record(1, stream) for stream in streams), tap="tap crm").error is None
    later = {"older_than_seconds": 0, "now": lambda: 4e9}
    assert prune(str(tmp_path), **later, prefix="erp-") == []
    assert len(prune(str(tmp_path), **later, prefix="crm-")) == 8 * len(streams) and stored(tmp_path) == {}


@pytest.mark.parametrize(
    "name",
    [
        "contacts.jsonl",
        "tap-crm--contacts-00001.jsonl",
        "tap-crm--contacts-0123456789ab-00001.jsonl.bak",
        "tap-crm--contacts-0123456789ab-00001.json.gz",
        "tap-crm--contacts-0123456789ab-00001.parquet.gz",
        "tap-crm--contacts-0123456789AB-00001.jsonl",
        "tap-crm-contacts-0123456789ab-00001.jsonl",
        "tap-crm--contacts-0123456789ab-1.jsonl",
        "tap-crm--contacts-5a3b8c1e-9a55-4b0e-8d58-1d2f3a4b5c6d-0.json.gz",  # of the Singer SDK
        f".{NAME}",
        ".tmp-0123",
        "",
    ],
)
def test_names_of_others_are_not(tmp_path, name):
    if name:
        path = put(tmp_path / name, 100 * DAY)
        assert pruned(tmp_path) == [] and path.exists()


def test_old_files_go_and_new_ones_stay(tmp_path):
    old = put(tmp_path / NAME, 8 * DAY, b"four")
    new = put(tmp_path / OTHER, 6 * DAY)
    (removed,) = pruned(tmp_path)
    assert (removed.url, removed.size_bytes, removed.modified) == (f"file://{old}", 4, NOW - 8 * DAY)
    assert not old.exists() and new.exists()
    assert pruned(tmp_path) == []


def test_a_dry_run_removes_nothing(tmp_path):
    old, dead = put(tmp_path / NAME, 8 * DAY), put(tmp_path / HIDDEN, 0)
    assert [file.url for file in pruned(tmp_path, dry_run=True)] == [f"file://{old}", f"file://{dead}"]
    assert old.exists() and dead.exists()
    assert len(pruned(tmp_path)) == 2 and stored(tmp_path) == {}


def test_a_prefix_narrows_it(tmp_path):
    names = {f"crm-{NAME}", f"erp-{NAME}", f"deep/crm-{NAME}", f"deep/{NAME}", f"crm-old/er/{NAME}"}
    for name in names:
        put(tmp_path / name, 8 * DAY)

    def gone(prefix):
        return [file.url.removeprefix(f"file://{tmp_path}/") for file in pruned(tmp_path, prefix=prefix)]

    assert gone("deep/crm-") == [f"deep/crm-{NAME}"]
    assert gone("crm-") == [f"crm-old/er/{NAME}", f"crm-{NAME}"]  # what lies below "deep" begins otherwise
    assert gone("crm-") == []
    assert set(stored(tmp_path)) == {f"erp-{NAME}", f"deep/{NAME}"}


def test_folders_below_are_gone_into_where_no_prefix_is_given(tmp_path):
    """A prefix such as "2024/05/crm-" makes folders; nobody has to know of them to clean."""
    old = [put(tmp_path / folder / NAME, 8 * DAY) for folder in ("", "a", "a/b", "c")]
    dead = put(tmp_path / "a" / HIDDEN, 0)
    new, foreign = put(tmp_path / "a" / "b" / OTHER, 6 * DAY), put(tmp_path / "c" / "precious.jsonl", 8 * DAY)
    assert {file.url for file in pruned(tmp_path)} == {f"file://{path}" for path in (*old, dead)}
    assert set(stored(tmp_path)) == {str(path.relative_to(tmp_path)) for path in (new, foreign)}


def test_hidden_folders_and_links_to_folders_are_left_alone(tmp_path):
    elsewhere = put(tmp_path / "elsewhere" / NAME, 8 * DAY)
    hidden = put(tmp_path / "root" / ".Trash" / NAME, 8 * DAY)
    (tmp_path / "root" / "link").symlink_to(elsewhere.parent)
    assert pruned(tmp_path / "root") == []
    assert elsewhere.exists() and hidden.exists()


def test_a_folder_below_that_may_not_be_read_is_said_and_the_others_are_cleaned(caplog):
    with tempfile.TemporaryDirectory() as outer:  # not below pytest's folders, which are closed to others
        Path(outer).chmod(0o777)
        locked = Path(outer, "lost+found")
        locked.mkdir(mode=0o700)
        Path(outer, ".hidden").mkdir(mode=0)  # not even looked at
        old = put(Path(outer, "open", NAME), 8 * DAY)
        old.parent.chmod(0o777)
        if os.geteuid():
            locked.chmod(0)
        with caplog.at_level(logging.WARNING, "burler"), nobody():
            (removed,) = pruned(outer)
        assert removed.url == f"file://{old}"
        assert caplog.messages == [f"batch files below {locked} stay: it can't be listed: Permission denied."]


def test_folders_and_links_with_such_names_stay(tmp_path):
    (tmp_path / NAME).mkdir()
    precious = put(tmp_path / "precious", 8 * DAY)
    (tmp_path / OTHER).symlink_to(precious)
    os.utime(tmp_path / NAME, (0, 0))
    os.utime(tmp_path / OTHER, (0, 0), follow_symlinks=False)
    assert pruned(tmp_path) == []
    assert (tmp_path / NAME).is_dir() and (tmp_path / OTHER).is_symlink() and precious.exists()


def test_a_file_that_is_being_written_stays_however_old_it_is(tmp_path):
    path = put(tmp_path / HIDDEN, 100 * DAY)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert pruned(tmp_path) == [] and path.exists()
    assert [file.url for file in pruned(tmp_path)] == [f"file://{path}"]
    assert not path.exists()


def test_where_there_are_no_locks_age_decides(tmp_path, monkeypatch):
    def no_lock(_fd, _how):
        raise OSError("no locks")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    put(tmp_path / HIDDEN, 8 * DAY)
    new = put(tmp_path / HIDDEN.replace("0123456789abcdef", "f" * 16), 6 * DAY)
    assert len(pruned(tmp_path)) == 1
    assert set(stored(tmp_path)) == {new.name}


def test_a_file_that_another_removes_meanwhile_is_no_error(tmp_path, monkeypatch):
    put(tmp_path / NAME, 8 * DAY)
    put(tmp_path / OTHER, 8 * DAY)
    unlink = os.unlink

    def late(path, **more):
        monkeypatch.setattr(os, "unlink", unlink)
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", late)
    assert len(pruned(tmp_path)) == 2 and stored(tmp_path) == {}


def test_places_and_ages_that_can_not_be(tmp_path):
    with pytest.raises(ConfigError, match="0 seconds old or more, not -1"):
        prune(str(tmp_path), older_than_seconds=-1)
    with pytest.raises(ConfigError, match="0 seconds old or more, not nan"):
        prune(str(tmp_path), older_than_seconds=float("nan"))
    with pytest.raises(UsageError, match=f"{tmp_path}/gone is not there. Give the folder"):
        pruned(tmp_path / "gone")
    with pytest.raises(ConfigError, match=r"^prefix: "):
        pruned(tmp_path, prefix="../")
    with pytest.raises(ConfigError, match=r"^the folder of batch files: no store has nonsense://"):
        pruned("nonsense://x/y")
    with pytest.raises(ConfigError, match="a user and password"):
        pruned("s3://a:b@c/x")


# ---- stores ------------------------------------------------------------------------------------------------


def published(storage, name):
    file = storage.new_file(name)
    file.write(b"rows")
    return file.publish()


def test_files_of_a_bucket(s3_server):
    storage = batch_storage.open_storage(batch_config.BatchStorage(s3_server.url("batches"), "crm-", s3_server.options))
    published(storage, NAME)
    published(storage, OTHER)
    for key in ("batches/precious.jsonl", f"batches/deep/crm-{NAME}", f"other/crm-{NAME}", f"batches/erp-{NAME}"):
        s3_server.put(key, b"x")
    others = {"batches/precious.jsonl", f"batches/deep/crm-{NAME}", f"other/crm-{NAME}", f"batches/erp-{NAME}"}
    ask = {"prefix": "crm-", "options": s3_server.options}
    root = s3_server.url("batches")
    assert prune(root, older_than_seconds=3600, **ask) == []
    found = prune(root, older_than_seconds=0, dry_run=True, now=lambda: 4e9, **ask)
    assert [(file.url, file.size_bytes) for file in found] == [(f"{root}/crm-{NAME}", 4), (f"{root}/crm-{OTHER}", 4)]
    assert len(s3_server.keys()) == 6
    assert prune(f"{root}/", older_than_seconds=0, now=lambda: 4e9, **ask) == found
    assert set(s3_server.keys()) == others
    assert prune(root, older_than_seconds=0, now=lambda: 4e9, **ask) == []


def test_folders_of_a_bucket_are_gone_into(s3_server):
    ours = [f"batches/{NAME}", f"batches/2024/05/{NAME}", f"batches/2024/06/crm-{NAME}"]
    others = [f"batches/.hidden/{NAME}", f"other/{NAME}", "batches/2024/05/precious.jsonl", f"batchesx/{NAME}"]
    for key in (*ours, *others):
        s3_server.put(key, b"rows")
    s3_server.put("batches/2024/", b"")  # as consoles make folders
    keys = (ours[1], *others[:3])
    begun = [s3_server.client.create_multipart_upload(Bucket=s3_server.bucket, Key=key)["Key"] for key in keys]
    root, ask = s3_server.url("batches"), {"options": s3_server.options, "now": lambda: 4e9}
    found = prune(root, older_than_seconds=0, prefix="2024/06/", **ask)
    assert [file.url for file in found] == [s3_server.url(ours[2])]
    found = prune(root, older_than_seconds=0, **ask)
    assert [(file.url, file.size_bytes) for file in found] == [
        (s3_server.url(ours[1]), 4),
        (s3_server.url(ours[0]), 4),
        (s3_server.url(ours[1]), 0),
    ]
    assert set(s3_server.keys()) == {*others, "batches/2024/"}
    assert sorted(s3_server.uploads()) == sorted(begun[1:])


def test_a_folder_of_a_bucket_that_has_been_emptied_is_no_error_and_a_missing_bucket_is(s3_server):
    assert prune(s3_server.url("batches"), older_than_seconds=0, options=s3_server.options) == []
    with pytest.raises(UsageError, match="Is the name of the bucket right"):
        prune("s3://no-such-bucket/x", older_than_seconds=0, options=s3_server.options)


def test_old_uploads_of_killed_runs_are_aborted(s3_server):
    program = (
        "import os, sys\n"
        "from support.internals import batch_storage; open_storage = batch_storage.open_storage\n"
        "from support.internals import batch_config; BatchStorage = batch_config.BatchStorage\n"
        "file = open_storage(BatchStorage(sys.argv[1], 'crm-')).new_file(sys.argv[2])\n"
        "file.write(bytes(17 << 20))\n"
        "file.publish()\n"
    )
    run = [sys.executable, "-c", program, s3_server.url("batches"), NAME]
    process = subprocess.Popen(run, env={**os.environ, **s3_server.environment})
    with s3_server.failing(lambda asked: process.kill() if "partNumber=2" in asked else None):
        assert process.wait(60) == -9
    s3_server.client.create_multipart_upload(Bucket=s3_server.bucket, Key="batches/somebody-elses")
    assert len(s3_server.uploads()) == 2
    root, ask = s3_server.url("batches"), {"prefix": "crm-", "options": s3_server.options}
    begun = s3_server.client.list_multipart_uploads(Bucket=s3_server.bucket)["Uploads"][0]["Initiated"].timestamp()
    assert prune(root, older_than_seconds=3600, now=lambda: begun + 3000, **ask) == []
    later = {"older_than_seconds": 0, "now": lambda: 4e9}
    assert [file.url for file in prune(root, dry_run=True, **later, **ask)] == [f"{root}/crm-{NAME}"]
    assert len(s3_server.uploads()) == 2
    assert [file.url for file in prune(root, **later, **ask)] == [f"{root}/crm-{NAME}"]
    assert s3_server.uploads() == ["batches/somebody-elses"]


def test_rights_to_remove_that_are_missing(s3_server):
    storage = batch_storage.open_storage(batch_config.BatchStorage(s3_server.url("batches"), "", s3_server.options))
    published(storage, NAME)
    wrong = pytest.raises(StorageError, match=r"can't be removed: (?s:.*)may they list, read, write and delete")
    with s3_server.failing(lambda asked: None if asked.startswith(("GET", "HEAD")) else (403, "AccessDenied")), wrong:
        prune(storage.root, older_than_seconds=0, now=lambda: 4e9, options=s3_server.options)
    assert len(s3_server.keys()) == 1


def test_hidden_files_of_a_store_go_when_they_are_old():
    import fsspec

    fsspec.filesystem("memory").pipe(f"/cleaned/{HIDDEN}", b"x")  # as an earlier run has left it
    assert prune("memory://cleaned", older_than_seconds=3600) == []
    (removed,) = prune("memory://cleaned", older_than_seconds=0, now=lambda: 4e9)
    assert removed.url == f"memory://cleaned/{HIDDEN}"


# ---- the command -------------------------------------------------------------------------------------------


def command(*arguments):
    return burler("batch", "clean", *arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_files_of_an_ftp_server(tmp_path, caplog):
    pytest.importorskip("pyftpdlib")
    with ftp_server(tmp_path) as (url, folder):
        put(folder / "batches" / NAME, 8 * DAY)
        put(folder / "batches" / OTHER, 6 * DAY)
        (removed,) = pruned(f"{url}/batches")
        assert removed.url == f"{url}/batches/{NAME}" and removed.modified == NOW - 8 * DAY
    assert [path.name for path in (tmp_path / "batches").iterdir()] == [OTHER]
    with ftp_server(tmp_path, says_times=False) as (url, _):
        assert pruned(f"{url}/batches", days=0) == []
    assert f"batch files of {url}/batches stay (1, such as {OTHER})" in caplog.text
    assert "does not say when they were written" in caplog.text and (tmp_path / "batches" / OTHER).exists()


def test_the_command_says_what_it_does(tmp_path):
    path = put(tmp_path / NAME, 0)
    os.utime(path, (0, 0))
    assert command(tmp_path, "--older-than", "7d", "--dry-run").text == (
        f"file://{path}  4 bytes\n1 file would be removed, 4 bytes.\n"
    )
    assert command(tmp_path, "--older-than", "7d", "--prefix", "crm-").text == "0 files removed, 0 bytes.\n"
    done = command(tmp_path, "--older-than", "7d")
    assert (done.code, done.text) == (0, f"file://{path}  4 bytes\n1 file removed, 4 bytes.\n")
    assert not path.exists()


def test_the_command_reaches_stores(s3_server, tmp_path):
    import json

    options = tmp_path / "config-options.json"  # a file that may hold secrets
    options.write_text(json.dumps(s3_server.options))
    s3_server.put(f"batches/{NAME}", b"rows")
    root = s3_server.url("batches")
    done = command(root, "--older-than", "1d", "--storage-options", options)
    assert (done.code, done.text) == (0, "0 files removed, 0 bytes.\n"), done.stderr


def test_ages(tmp_path):
    """So many seconds are old enough, and a minute less is not, of whichever unit."""
    now = time.time()
    for said, seconds in (("90s", 90), ("30m", 1800), ("12h", 43_200), ("7D", 604_800), ("1.5 w", 907_200)):
        for name, age in ((NAME, seconds + 60), (OTHER, seconds - 60)):
            path = put(tmp_path / name, 0)
            os.utime(path, (now - age, now - age))
        assert command(tmp_path, "--older-than", said, "--dry-run").text.endswith("1 file would be removed, 4 bytes.\n")
    for said in ("0", "0s"):
        assert "2 files would" in command(tmp_path, "--older-than", said, "--dry-run").text


def test_an_age_needs_a_unit_for_what_is_removed_does_not_come_back(tmp_path):
    """Who writes 7 means days; 7 seconds would take files that a target has not read yet."""
    path = put(tmp_path / NAME, 0)
    os.utime(path, (0, 0))
    for said in ("7", "90", "0.5", "1 "):
        done = command(tmp_path, "--older-than", said)
        assert done.code == 2
        assert f"{said!r} has no unit: days or seconds? Write it as 7d, 12h" in " ".join(done.stderr.split())
    for said in ("", "d", "-1d", "7 days", "1y", "nan", "1e3", "٧d"):
        assert command(tmp_path, "--older-than", said).code == 2, said
    assert command(tmp_path).code == 2
    assert path.exists()
