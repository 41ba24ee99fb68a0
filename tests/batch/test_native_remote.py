"""Files of a source that lie elsewhere: on web servers, in S3."""

import logging

import pytest
from native_taps import ROWS, SCHEMA, batches, config_of, put, rows_in, shaped, tap_of

from burler import batch_files
from burler.testing import canary, run_tap
from support.servers import serving


@pytest.fixture
def web(tmp_path):
    """A web server of the folder ``web``: its address."""
    folder = tmp_path / "web"
    folder.mkdir()

    def answer(asked):
        path = folder / asked.path.lstrip("/")
        return path.read_bytes() if path.exists() else 404

    with serving(answer) as server:
        yield server, folder


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl.gz", "a.parquet", "a.arrow"])
def test_files_of_a_web_server_come_as_records(web, name):
    server, folder = web
    put(folder, name)
    assert len(run_tap(tap_of(batch_files(f"{server.url}/{name}"))).records("orders")) == 3


def test_csv_of_a_web_server_passes(tmp_path, web):
    server, folder = web
    put(folder, "a.csv")
    run = run_tap(tap_of(batch_files(f"{server.url}/a.csv")), config_of(tmp_path))
    assert batches(run)[0]["manifest"] == [f"{server.url}/a.csv"]


def test_a_signed_url_passes_in_the_dialect_that_keeps_queries(tmp_path, web, caplog):
    server, folder = web
    put(folder, "a.csv")
    url = f"{server.url}/a.csv?signature=abc"
    run = run_tap(tap_of(batch_files(url)), config_of(tmp_path, dialect="sip"))
    assert batches(run)[0]["manifest"] == [url]
    secret = canary("url-signature")
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(url.replace("abc", secret))), config_of(tmp_path))
    assert shaped(rows_in(run, tmp_path)) == shaped(ROWS)
    assert "their URLs have a query" in caplog.text and secret not in caplog.text
    assert f"/a.csv?signature={secret}" in server.paths


def test_columns_that_nobody_can_look_up_are_written_anew(tmp_path, web, caplog):
    server, folder = web
    put(folder, "a.parquet")
    with caplog.at_level(logging.INFO):
        run = run_tap(tap_of(batch_files(f"{server.url}/a.parquet")), config_of(tmp_path))
    assert "it can't be read from its end where it lies" in caplog.text
    assert shaped(rows_in(run, tmp_path)) == shaped(ROWS)


def test_a_file_that_the_server_does_not_have_ends_the_stream(tmp_path, web):
    server, _folder = web
    run = run_tap(tap_of(batch_files(f"{server.url}/gone.csv")), config_of(tmp_path))
    assert run.result.exit_code == 1 and not batches(run)
    assert f"{server.url}/gone.csv" in str(run.result.errors["orders"])


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "a.jsonl"])
def test_files_in_s3_pass_or_come_as_records(tmp_path, s3_server, name):
    s3_server.put(f"exports/{name}", put(tmp_path, name).read_bytes())
    url = s3_server.url(f"exports/{name}")
    given = {"storage_options": s3_server.options, **({"columns": SCHEMA["properties"]} if "jsonl" in name else {})}
    run = run_tap(tap_of(batch_files(url, **given)), config_of(tmp_path))
    assert batches(run)[0]["manifest"] == [url] and url.startswith("s3://")
    assert len(run_tap(tap_of(batch_files(url, **given))).records("orders")) == 3


def test_a_bucket_that_refuses_ends_the_stream_and_shows_no_secret(tmp_path, s3_server):
    secret = canary("wrong-s3-secret")
    files = batch_files(s3_server.url("a.csv"), storage_options={**s3_server.options, "secret": secret})
    run = run_tap(tap_of(files), config_of(tmp_path))
    assert run.result.exit_code == 1 and not batches(run)
    assert s3_server.url("a.csv") in str(run.result.errors["orders"])
    assert secret not in str(run.result.errors["orders"])
