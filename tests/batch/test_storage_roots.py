"""Where batch files may lie, and how their URLs are written."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from stored_files import NAME

from burler.batch import prune, read
from burler.errors import BatchError, ConfigError, MissingExtra
from burler.testing import canary
from support.internals import batch_config, batch_storage


def opened(root, prefix="", options=None, **more):
    return batch_storage.open_storage(batch_config.BatchStorage(str(root), prefix, options or {}), **more)


def rows_of(url, options=None):
    return list(read({"type": "BATCH", "stream": "s", "manifest": [url]}, options=options).rows())


@pytest.mark.parametrize("name", ["a b", "ü", "日本", "a+(),;@=&~$!'*", "c:d", "[x]", "{x}", "x..y"])
def test_a_roots_characters_stand_plainly_in_the_url(tmp_path, name):
    """As targets on the Singer SDK take them: they do not percent-decode."""
    file = opened(str(tmp_path / name)).new_file(NAME)
    file.write(b'{"id":1}\n')
    url = file.publish()
    assert url == f"file://{tmp_path}/{name}/{NAME}"
    assert Path(url.removeprefix("file://")).read_bytes() == b'{"id":1}\n'
    assert list(read({"type": "BATCH", "stream": "s", "manifest": [url]}).rows()) == [{"id": 1}]


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%20b", "a::b", "a\nb", "a\x7fb", "a\udcffb"])
def test_characters_that_readers_do_not_agree_on_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=r"batch_config.storage.root: .*\n  Give a folder without it; a link will do"):
        opened(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_they_are_refused_in_the_folder_that_a_run_starts_in(tmp_path, monkeypatch):
    (tmp_path / "50%").mkdir()
    monkeypatch.chdir(tmp_path / "50%")
    with pytest.raises(ConfigError, match=f"{tmp_path}/50%/batches"):
        opened("batches")


def test_a_file_url_is_decoded(tmp_path):
    assert opened(f"file://{tmp_path}/a%20b/").root == f"file://{tmp_path}/a b"
    assert opened(f"file://localhost{tmp_path}/x").root == f"file://{tmp_path}/x"
    assert opened(f"file:{tmp_path}/x").root == f"file://{tmp_path}/x"
    with pytest.raises(ConfigError, match="'%'"):
        opened(f"file://{tmp_path}/a%2541")


def test_a_tilde_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert opened("~/batches").root == f"file://{tmp_path}/batches"


@pytest.mark.parametrize(
    ("root", "says"),
    [
        ("", "is empty or no path"),
        ("a\0b", "is empty or no path"),
        ("file:relative/x", "names no folder of this machine"),
        ("file://other-machine/x", "names no folder of this machine"),
        ("file:///x?y=1", "names no folder of this machine"),
        ("s3:/bucket/x", r"is no URL. Did you mean s3://bucket/x\?"),
        ("https://example.com/x", "https:// can't be written to, nor listed. Give a folder, s3://bucket/folder"),
        ("s3://", "names no folder of a store"),
        ("s3://bucket/../other", "names no folder of a store"),
        ("s3://bucket/a#b", "'#' in it"),
        ("s3://bucket/a?versionId=1", r"'\?' in it"),
        ("simplecache::s3://bucket/x", "'::' in it"),
        ("nonsense://bucket/x", "no store has nonsense://"),
    ],
)
def test_roots_that_are_none(root, says):
    with pytest.raises(ConfigError, match=f"^batch_config.storage.root: .*{says}"):
        opened(root)


def test_credentials_in_a_root_are_refused_and_not_shown():
    secret = canary("root-password")
    roots = (
        f"s3://AKIAKEY:{secret}@bucket/x",
        f"s3://AKIAKEY:with/{secret}@bucket/x",
        f"sftp://user:{secret}@host:22/x",
        f"az://container/x?sv=2024&sig={secret}",
        f"s3://bucket/x?X-Amz-Signature={secret}",
        "sftp://u:p@host/x",
    )
    for root in roots:
        with pytest.raises(ConfigError, match="would show them") as caught:
            opened(root)
        assert "batch_config.storage.options" in str(caught.value)
        assert secret not in str(caught.value) and "AKIA" not in str(caught.value)


def test_users_without_a_password_and_ports_are_no_credentials():
    for root in (
        "sftp://user@host:22/x",
        "abfs://container@account.dfs.core.windows.net/x",
        "s3://bucket:80/x",
        "x@y:z",
    ):
        found = batch_storage.locate(root)
        assert (found.folder is None) == ("://" in root)


@pytest.mark.parametrize("prefix", ["", "crm-", "2024/01/", "a/b-", "A_z.9-"])
def test_prefixes(tmp_path, prefix):
    file = opened(str(tmp_path), prefix).new_file(NAME)
    file.write(b"x\n")
    assert file.publish() == f"file://{tmp_path}/{prefix}{NAME}"
    assert (tmp_path / f"{prefix}{NAME}").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    "prefix", ["a b", "ü", "/x", "a//b", "../x", "a/../b", "./x", ".hid", "a/.hid", "x%", "p" * 101]
)
def test_prefixes_that_are_none(tmp_path, prefix):
    with pytest.raises(ConfigError, match=r"^batch_config.storage.prefix: .* can't begin a file's name"):
        opened(str(tmp_path), prefix)


@pytest.mark.parametrize(
    ("root", "meant"), [("bucket/x", "s3://bucket/x"), ("./x", "s3://bucket/folder"), ("/x", "s3://bucket/folder")]
)
def test_a_folder_has_no_options_for_its_scheme_was_forgotten(tmp_path, monkeypatch, root, meant):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"root '{root}' is a folder of this machine.\n  Did you mean {meant}\?"):
        opened(root, "", {"key": "AKIA", "secret": canary("no-store")})
    assert list(tmp_path.iterdir()) == []


def test_memory_ends_with_the_process_and_that_is_said(caplog):
    with caplog.at_level(logging.WARNING, "burler"):
        opened("memory://warned")
    (said,) = caplog.messages
    assert said.startswith("batch_config.storage.root memory://warned: its files end with this process")


@pytest.mark.parametrize("root", ["file:///tmp", "memory://signed"])
def test_folders_and_memory_have_no_signed_urls(root):
    with pytest.raises(ConfigError, match=rf"^batch_config.presign_seconds: {root.partition(':')[0]}:// has no signed"):
        opened(root, presign_seconds=60)


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [("s3", "s3fs", "s3"), ("gs", "gcsfs", "gcs"), ("az", "adlfs", "azure"), ("abfss", "adlfs", "azure")],
)
def test_a_package_that_is_not_there_is_named(monkeypatch, scheme, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    needed = f"needs the package '{package}', of burler's extra '{extra}'. Install it: "
    with pytest.raises(MissingExtra, match=f"^writing batch files on {scheme}:// {needed}"):
        opened(f"{scheme}://bucket/x")
    for act in (
        lambda: rows_of(f"{scheme}://bucket/x.jsonl"),
        lambda: prune(f"{scheme}://bucket/x", older_than_seconds=1),
    ):
        with pytest.raises(MissingExtra, match=needed):
            act()


def test_a_package_that_no_extra_has_is_named():
    with pytest.raises(ConfigError, match=r"oci://bucket/x can't be opened: .*ocifs"):
        opened("oci://bucket/x")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kee": 1}, "^batch_config.storage.options: s3fs does not know 'kee'"),
        ({"client_kwargs": {"regoin_name": "x"}}, "^batch_config.storage.options: s3fs does not know 'regoin_name'"),
        ({"config_kwargs": {"proxy": 1}}, "^batch_config.storage.options: s3fs does not know 'proxy'"),
        ({"max_concurrency": 0}, r"Are URL and options right \(batch_config.storage.options\)"),
        (
            {"endpoint_url": "here"},
            r"Invalid endpoint: here.\n  Are URL and options right \(batch_config.storage.options",
        ),
        ({"client_kwargs": {"region_name": "a b"}}, r"region_name 'a b'.*\n  Are URL and options right"),
        ({"client_kwargs": 3}, "Are URL and options right"),
        (
            {"profile": "no-such-profile"},
            r"profile \(no-such-profile\) could not be found.\n  Are URL and options right",
        ),
    ],
)
def test_options_that_the_store_does_not_take_are_a_wrong_config(options, says):
    with pytest.raises(ConfigError, match=says) as caught:
        opened("s3://bucket/x", "", {"key": "AKIA", "secret": canary("option"), **options})
    assert len(str(caught.value).splitlines()) <= 3 and "endpoint right" not in str(caught.value)


def test_an_option_that_the_store_does_not_know_has_the_name_that_its_user_knows():
    with pytest.raises(ConfigError, match=r"^the storage options: s3fs does not know 'kee'"):
        prune("s3://bucket/x", older_than_seconds=1, options={"kee": 1})
    with pytest.raises(BatchError, match=r"'kee'.*\n  Are the URL and the storage options right\?"):
        rows_of("s3://bucket/x", {"kee": 1})
