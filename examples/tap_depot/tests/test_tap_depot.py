"""tap_depot as its users run it, against spyne's server in a process of its own."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from lxml import etree

import tap_depot
from burler.testing import run_tap
from tap_depot import environment
from tap_depot.environment import NotInstalled, python

FOLDER = Path(tap_depot.__file__).parent
ROOT = FOLDER.parents[1]
STREAMS = ("orders", "products", "stock")


@pytest.fixture(scope="module")
def spynes_python():
    """The Python that has spyne; without a Python 3.11 there is none."""
    try:
        return python()
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.fixture
def start(spynes_python, monkeypatch):
    """Start servers that end with the test; each gives its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = []

    def begin(*command):
        server = subprocess.Popen([*command, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        running.append(server)
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address
        return address

    yield begin
    for server in running:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture
def serve(start, spynes_python):
    """The same by the server's file, in spyne's Python."""
    return lambda *options: start(spynes_python, FOLDER / "server.py", *options)


def change(address, count):
    request = urllib.request.Request(f"{address}/changes?count={count}", method="POST")
    with urllib.request.urlopen(request) as reply:
        assert reply.status == 204


def run(address, **more):
    return run_tap(tap_depot.tap, {"base_url": address, "retries": 0}, **more)


def burler(*arguments, **config):
    given = {f"TAP_DEPOT_{key.upper()}": value for key, value in config.items()}
    given |= {"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"}
    line = [sys.executable, "-m", "burler", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, env=given, capture_output=True, text=True, check=False)


def test_without_a_python_3_11_the_server_says_so(tmp_path, monkeypatch):
    """A name on the path that starts nothing, as pyenv leaves some, counts for none."""
    monkeypatch.setattr(environment, "VERSION", (3, 99))
    monkeypatch.setattr(environment, "FOLDER", tmp_path / "venv")
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(NotInstalled, match=r"needs Python 3\.11 beside this one"):
        python()


def test_the_wsdl_is_spynes_and_has_what_matters(serve, spynes_python):
    """Arrays, inheritance, enumerations, decimals, dates, nillable: what the schemas below come from."""
    with urllib.request.urlopen(serve() + "/?wsdl") as reply:
        text = reply.read()
    assert b"http://schemas.xmlsoap.org/ws/2003/05/partner-link/" in text  # spyne declares it, needed or not
    version = [spynes_python, "-c", "import spyne; print(spyne.__version__)"]
    assert subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip() == "2.14.0"
    root = etree.fromstring(text)
    xs = "{http://www.w3.org/2001/XMLSchema}"
    assert [node.get("base") for node in root.iter(f"{xs}extension")] == ["tns:Entry", "tns:Entry"]
    assert root.find(f".//{xs}enumeration") is not None
    for attribute in ("nillable='true'", "maxOccurs='unbounded'", "type='xs:date'", "type='xs:dateTime'"):
        assert root.find(f".//{xs}element[@{attribute}]") is not None, attribute


def test_discovery_takes_its_schemas_from_the_wsdl(serve):
    done = burler("discover", FOLDER, base_url=serve())
    assert done.returncode == 0, done.stderr
    catalog = {entry["tap_stream_id"]: entry["schema"] for entry in json.loads(done.stdout)["streams"]}
    assert set(catalog) == set(STREAMS)
    order, product = catalog["orders"]["properties"], catalog["products"]["properties"]
    assert list(order)[:2] == ["Number", "Changed"]  # of the base, so first
    assert order["Status"] == {"type": "string", "enum": ["new", "paid", "shipped"]}
    assert order["Total"] == {"type": "number", "format": "singer.decimal"}
    assert order["Shipped"] == {"type": ["null", "string"], "format": "date-time"}
    assert order["Lines"]["items"]["properties"]["Count"] == {"type": "integer"}
    assert product["Tags"] == {"type": ["null", "array"], "items": {"type": ["null", "string"]}}


def test_all_rows_come_and_a_second_run_brings_what_changed(serve):
    address = serve("--orders", "230")
    first = run(address)
    assert not first.result.errors
    orders = first.records("orders")
    assert [row["Number"] for row in orders] == list(range(1, 231))
    assert {row["Note"] for row in orders} == {None, "", "<urgent> & fragile", "Grüße"}
    for row in orders:
        assert row["Total"] == pytest.approx(sum(line["Price"] * line["Count"] for line in row["Lines"]))
    assert len(first.records("products")) == len(first.records("stock")) == 120

    change(address, 3)
    second = run(address, state=first.states[-1])
    assert not second.result.errors
    again = second.records("orders")
    assert len(again) == 7
    assert again[0]["Number"] == 230  # what stands at the bookmark comes again
    assert [row["Status"] for row in again[1:4]] == ["paid"] * 3
    assert [row["Number"] for row in again[4:]] == [231, 232, 233]
    assert len(second.records("products")) == 120  # a full table

    third = run(address, state=second.states[-1])
    assert [row["Number"] for row in third.records("orders")] == [233]


def test_orders_that_change_while_pages_are_read_hide_no_other(serve):
    address = serve("--orders", "120")
    client = tap_depot.client({"base_url": address, "retries": 0})
    seen = []
    for page in tap_depot.orders(client, type("Stream", (), {"bookmark": None})):
        if not seen:
            change(address, 40)  # a third of all moves to the end, and what stands behind moves up
        seen += [row["Number"] for row in page]
    assert set(seen) == set(range(1, 161))


def test_a_fault_ends_its_stream_and_no_other(serve):
    out = run(serve("--stock-fails"))
    assert set(out.result.errors) == {"stock"}
    assert out.result.exit_code == 1
    said = str(out.result.errors["stock"]).splitlines()[0]
    assert said.endswith("fault Server.Counting: the shelves are being counted, ask again tomorrow")
    assert len(out.records("stock")) == 50  # the first page
    assert len(out.records("orders")) == 230 and len(out.records("products")) == 120
    finished = [one["stream"] for one in out.messages if one["type"] == "ACTIVATE_VERSION"]
    assert finished.count("products") == 2 and finished.count("stock") == 1  # so no older row goes


def test_a_server_that_is_gone_is_one_error():
    done = burler("run", FOLDER, base_url="http://127.0.0.1:9")
    assert done.returncode == 2, done.stderr
    assert "the connection was refused. Is the address right, and the network there?" in done.stderr
    assert not done.stdout


def test_the_readmes_commands_run(start, tmp_path):
    """The server by its module, as the README starts it; the tap by its folder with the sample config."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = ("python -m examples.tap_depot.server &", "burler run examples/tap_depot --config")
    for name in (*commands, "--stock-fails", *STREAMS):
        assert name in text, name
    address = start(sys.executable, "-m", "examples.tap_depot.server", "--orders", "5")
    sample = json.loads((FOLDER / "config.sample.json").read_text(encoding="utf-8"))
    assert sample["base_url"] in text
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**sample, "base_url": address}))
    done = burler("run", "examples/tap_depot", "--config", config)
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(one["type"] == "RECORD" and one["stream"] == "orders" for one in messages) == 5
