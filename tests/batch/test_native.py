"""What an author may say to ``burler.batch_files``, and what is made of it."""

import datetime as dt
import json

import msgspec
import pytest

from burler import batch_files
from burler.batch import read
from burler.errors import DeclarationError
from burler.testing import canary
from support.cli import burler
from support.internals import batch_config


def test_a_relative_path_becomes_an_absolute_file_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = batch_files("out/orders.jsonl")
    assert files.urls == (f"file://{tmp_path}/out/orders.jsonl",)
    assert (files.format, files.compression, files.format_options) == ("jsonl", None, {})


@pytest.mark.parametrize("name", ["a b.jsonl", "50%.jsonl", "what?.jsonl", "no#1.jsonl", "été.jsonl", "a%20b.jsonl"])
def test_any_file_name_is_found_again_behind_its_url(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"id": 1}\n')
    files = batch_files(path)
    message = {"type": "BATCH", "stream": "s", "manifest": list(files.urls)}
    assert list(read(message).rows()) == [{"id": 1}]
    assert not set("?#") & set(files.urls[0])


def test_a_plain_url_goes_as_it_is():
    files = batch_files(["s3://bucket/a.csv.gz", "s3://bucket/b.csv.gz"])
    assert files.urls == ("s3://bucket/a.csv.gz", "s3://bucket/b.csv.gz")


@pytest.mark.parametrize(
    ("name", "kind", "packing"),
    [
        ("a.jsonl", "jsonl", None),
        ("a.ndjson.gz", "jsonl", "gzip"),
        ("a.csv", "csv", None),
        ("a.csv.gz", "csv", "gzip"),
        ("a.CSV.ZST", "csv", "zstd"),
        ("a.jsonl.bz2", "jsonl", "bz2"),
        ("a.csv.xz", "csv", "xz"),
        ("a.parquet", "parquet", None),
        ("a.b.arrow", "arrow", None),
        ("a.feather", "arrow", None),
    ],
)
def test_names_say_format_and_compression(name, kind, packing):
    files = batch_files(f"/data/{name}")
    assert (files.format, files.compression) == (kind, packing)


def test_tabs_stand_between_the_fields_of_tsv():
    assert batch_files("/data/a.tsv.gz").format_options == {**batch_config.CSV_DEFAULTS, "delimiter": "\t"}


def test_a_query_is_no_part_of_a_name():
    files = batch_files("https://example.com/report.csv.gz?sig=a.parquet&x=1")
    assert (files.format, files.compression) == ("csv", "gzip")


def test_what_the_name_does_not_say_may_be_said():
    files = batch_files("/data/part-0000", format="jsonl", compression="gzip")
    assert (files.format, files.compression) == ("jsonl", "gzip")
    assert batch_files("/data/part-0000.gz", format="csv").compression == "gzip"
    assert batch_files("/data/rows.json", format="jsonl").format == "jsonl"
    files = batch_files("/data/a.csv.gz", format="jsonl", compression="none")
    assert (files.format, files.compression) == ("jsonl", None)


def test_no_files_are_no_rows():
    assert batch_files([]).urls == ()


def test_csv_options_are_all_there():
    files = batch_files("/data/a.csv", delimiter=";", quote_char="'", header=False, null="\\N", columns=["a", "b"])
    assert files.format_options == {
        "delimiter": ";", "quote_char": "'", "header": False, "null": "\\N", "line_end": "\n"
    }  # fmt: skip
    assert files.columns == ("a", "b")
    assert batch_files("/data/a.csv", quote_char="").format_options["quote_char"] is None


def test_sizes_are_of_all_files_or_of_each():
    assert batch_files(["/a.jsonl", "/b.jsonl"], size=7).size == 7
    assert batch_files(["/a.jsonl", "/b.jsonl"], size=[7, 8]).size == (7, 8)
    assert batch_files("/a.jsonl").size is None


def test_it_is_frozen_and_knows_no_bookmark_by_itself():
    files = batch_files("/a.jsonl")
    assert files.bookmark is msgspec.UNSET
    assert batch_files("/a.jsonl", bookmark=None).bookmark is None
    with pytest.raises(AttributeError):
        files.format = "csv"


NAIVE = dt.datetime(2024, 1, 1)  # noqa: DTZ001
REFUSED = {
    "unknown format": (
        {"urls": "/a.jsonl", "format": "avro"},
        "format 'avro' is not known. Known: jsonl, csv",
    ),
    "unknown compression": (
        {"urls": "/a.jsonl", "compression": "lz4"},
        "compression 'lz4' is not known. Known: none",
    ),
    "a name that says nothing": (
        {"urls": "/data/part-0000"},
        "does not say what it holds.\n  Say it: format=",
    ),
    "one document": (
        {"urls": "/a.json"},
        "does not say what it holds.\n  Say it: format='jsonl'",
    ),
    "two formats": (
        {"urls": ["/a.csv", "/b.jsonl"]},
        "written in several ways.*\n.*one batch_files for each",
    ),
    "two compressions": (
        {"urls": ["/a.csv", "/b.csv.gz"]},
        "written in several ways",
    ),
    "zip": (
        {"urls": "/a.csv.zip"},
        "is a zip.*burler.files.read",
    ),
    "csv options elsewhere": (
        {"urls": "/a.jsonl", "delimiter": ";"},
        "delimiter= is about csv, and these files are jsonl",
    ),
    "long delimiter": (
        {"urls": "/a.csv", "delimiter": "||"},
        "delimiter must be one letter",
    ),
    "delimiter and quote": (
        {"urls": "/a.csv", "delimiter": '"'},
        "delimiter and quote can't both be",
    ),
    "null that is no text": (
        {"urls": "/a.csv", "null": 3},
        "null must be text",
    ),
    "negative size": (
        {"urls": "/a.jsonl", "size": -1},
        "size is a number of rows",
    ),
    "size that is no number": (
        {"urls": "/a.jsonl", "size": True},
        "size is a number of rows",
    ),
    "too few sizes": (
        {"urls": ["/a.jsonl", "/b.jsonl"], "size": [1]},
        "or one for each of 2 files",
    ),
    "columns as a text": (
        {"urls": "/a.jsonl", "columns": "id"},
        "columns is a list of names",
    ),
    "a column twice": (
        {"urls": "/a.jsonl", "columns": ["id", "id"]},
        "columns is a list of names, each once",
    ),
    "naive time": (
        {"urls": "/a.jsonl", "time_extracted": NAIVE},
        "with a time zone",
    ),
    "no URL": (
        {"urls": 5},
        "takes paths and URLs as text, not 5",
    ),
    "an empty URL": (
        {"urls": ["/a.jsonl", ""]},
        "takes paths and URLs",
    ),
    "bytes": (
        {"urls": [b"/a.jsonl"]},
        "takes paths and URLs",
    ),
    "file of a host": (
        {"urls": "file://a.jsonl"},
        "three slashes",
    ),
    "temporary in a store": (
        {"urls": "s3://b/a.jsonl", "temporary": True},
        "temporary=True is for local files",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_is_refused_with_the_cure(case):
    given, said = REFUSED[case]
    given = dict(given)
    with pytest.raises(DeclarationError, match=rf"(?s){said}"):
        batch_files(given.pop("urls"), **given)


@pytest.mark.parametrize(
    "form", ["s3://{}:{}@bucket/a.jsonl", "https://{}@example.com/{}.jsonl", "ftp://{}:{}@h/a.jsonl"]
)
def test_credentials_in_a_url_are_refused_and_never_shown(form):
    key, secret = canary("key"), canary("store-secret")
    with pytest.raises(DeclarationError, match="credentials in it") as refused:
        batch_files(form.format(key, secret))
    assert key not in str(refused.value) and "storage_options" in str(refused.value)
    if ":{}@" in form:
        assert secret not in str(refused.value)


def test_a_container_before_the_host_is_no_credential():
    assert batch_files("abfss://in@account.dfs.core.windows.net/a.parquet").format == "parquet"


def test_neither_signatures_nor_options_are_shown():
    signature, secret = canary("signature"), canary("option-secret")
    files = batch_files(f"https://h/a.jsonl?sig={signature}", storage_options={"secret": secret})
    assert signature not in repr(files) and secret not in repr(files)
    assert "https://h/a.jsonl" in repr(files)


TAP = """
import logging, os, burler
tap = burler.tap("tap-shows")

@tap.sync("orders", key_properties=[], schema={"properties": {"id": {}}})
def orders():
    password, signature = os.environ["SOURCE_PASSWORD"], os.environ["SOURCE_SIGNATURE"]
    try:
        burler.batch_files(f"s3://me:{password}@bucket/a.jsonl")
    except burler.errors.DeclarationError:
        logging.getLogger("tap_shows").warning("it said %s", password)
    burler.batch_files(f"https://h/a.jsonl?sig={signature}")
    logging.getLogger("tap_shows").warning("options: %s", os.environ["SOURCE_OPTION"])
    logging.getLogger("tap_shows").warning("GET /a.jsonl?sig=%s", signature)
    yield {"id": 1}
"""


def test_what_was_secret_in_a_url_or_an_option_is_hidden_in_the_log_from_then_on(tmp_path, caplog):
    (tmp_path / "tap_shows.py").write_text(TAP)
    secrets = {name: canary(name.lower()) for name in ("SOURCE_PASSWORD", "SOURCE_SIGNATURE", "SOURCE_OPTION")}
    storage = {"root": "memory://hidden", "options": {"connection_string": secrets["SOURCE_OPTION"]}}
    said = json.dumps({"storage": storage})
    done = burler("run", "tap_shows.py", "--config", "ENV", cwd=tmp_path, TAP_SHOWS_BATCH_CONFIG=said, **secrets)
    assert done.code == 0, done.stderr
    assert "it said ***" in caplog.text and "GET /a.jsonl?***" in caplog.text and "options: ***" in caplog.text
    assert not any(secret in caplog.text + done.stderr for secret in secrets.values())
