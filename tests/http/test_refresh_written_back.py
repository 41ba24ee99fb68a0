"""Renewed tokens are in the config file before they are used: real processes, killed and otherwise."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest
from tokenserver import CLIENT_ID, refusal, serving

from burler.config import ConfigFiles, load
from burler.http import Client, oauth2_refresh, one_time
from burler.testing import canaries_in, canary
from support.cli import burler
from support.clocks import until

TAP = """
    import os, time
    import burler
    from burler.http import oauth2_refresh

    STRINGS = {name: {"type": "string"} for name in
               ("url", "token_url", "client_id", "client_secret", "refresh_token", "access_token", "expires_at")}
    tap = burler.tap("tap-renewed", config_spec={"type": "object", "properties": STRINGS})

    @tap.client
    def client(config):
        keys = ("token_url", "client_id", "client_secret")
        auth = oauth2_refresh(**{key: config[key] for key in keys}, config=config)
        return burler.http.Client(config["url"], auth=auth)

    @tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}, "type": "object"})
    def rows(client):
        for i in range(int(os.environ.get("PAGES", 3))):
            yield client.json("/rows", params={"from": i})
            time.sleep(float(os.environ.get("PAUSE", 0)))

    if __name__ == "__main__":
        tap.cli()
"""


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def config(server, tmp_path):
    (tmp_path / "tap_renewed.py").write_text(textwrap.dedent(TAP))
    path = tmp_path / "config.json"
    given = {"url": server.url, "refresh_token": server.refresh_token, "_note": "kept", **server.oauth()}
    assert given["client_id"] == CLIENT_ID
    path.write_text(json.dumps(given))
    path.chmod(0o600)
    return path


def started(config, *more, **env):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TAP_", "BURLER_", "LOGGING_"))}
    return subprocess.Popen(
        [sys.executable, "tap_renewed.py", "--config", config.name, *more],
        cwd=config.parent, env={**kept, "PYTHONWARNINGS": "error", **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(config, *more, **env):
    return burler("run", "tap_renewed.py", "--config", config.name, *more, cwd=config.parent, **env)


def held(config):
    return json.loads(config.read_text())


def test_a_run_leaves_the_newest_tokens_in_the_file_and_the_next_run_uses_them(server, config):
    server.first_uses = [2]
    code, out, err = run(config)
    assert code == 0, err
    assert len(server.asked) == 2
    found = held(config)
    assert found["refresh_token"] == server.refresh_token and found["access_token"] == list(server.valid)[-1]
    assert found["_note"] == "kept" and stat.S_IMODE(config.stat().st_mode) == 0o600
    assert out.count(b'"RECORD"') == 3
    assert "WARNING" not in err, err
    assert run(config).code == 0
    assert len(server.asked) == 2, "the saved access token lasts"


def test_killed_as_soon_as_the_token_is_used_the_file_has_the_new_refresh_token(server, config):
    process = started(config, PAGES="1000", PAUSE="0.2")
    try:
        limit = time.monotonic() + 40
        while not server.seen and time.monotonic() < limit:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert server.seen and held(config)["refresh_token"] == server.refresh_token
    assert len(server.asked) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_while_the_reply_is_on_its_way_the_run_waits_for_it(server, config, number):
    server.gate.clear()
    process = started(config)
    try:
        # The server has the request once a thread of it waits at the gate.
        until(lambda: server.waiting, "it asks for a token")
        process.send_signal(number)
        time.sleep(0.2)
        server.gate.set()
        _out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert len(server.asked) == 1 and not server.seen
    assert held(config)["refresh_token"] == server.refresh_token


def test_a_login_that_is_over_is_one_line_with_the_cure(server, config):
    server.answers = [refusal(400, "invalid_grant", f"{server.refresh_token} was used") for _ in range(9)]
    ended = run(config)
    assert ended.code == 1
    assert "Log in again, and put the new refresh_token into the config." in ended.one_critical()
    assert "RECORD" not in ended.text and len(server.asked) == 1


def test_a_file_that_can_not_be_written_is_said_and_the_run_goes_on(server, config):
    """The folder is gone from under it: what a mount that fails looks like."""
    server.gate.clear()
    process = started(config, PAGES="2")
    try:
        until(lambda: server.waiting, "it asks for a token")
        config.rename(config.with_name("config-elsewhere.json"))
        server.gate.set()
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.count('"RECORD"') == 2
    assert "NOT SAVED" in err and "'refresh_token'" in err
    assert "a token that works only once has to be given anew" in err


def test_messages_reports_and_metrics_of_such_a_run_hold_no_secret(server, config):
    server.first_uses = [1, 1]
    server.answers = []
    more = ["--metrics", "requests", "--report", "report.html"]
    code, out, err = run(config, *more, PAGES="4", BURLER_LOG_LEVEL="DEBUG")
    assert code == 0, err
    assert "http_request_duration" in err and "/token" in err
    report = (config.parent / "report.html").read_text()
    assert not [find for text in (out.decode(), err, report) for find in canaries_in(text)]


def waiting_for(server, count):
    until(lambda: server.waiting >= count, f"{count} ask for a token")
    assert server.waiting == count


def test_two_runs_with_one_login_ask_at_the_same_time(server, config):
    """One of them uses the refresh token up; the other one takes over what that puts into the file."""
    server.gate.clear()
    processes = [started(config), started(config)]
    try:
        waiting_for(server, 2)
        server.gate.set()
        ended = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=30)
    assert [process.returncode for process in processes] == [0, 0], ended
    assert [out.count('"RECORD"') for out, _err in ended] == [3, 3]
    assert held(config)["refresh_token"] == server.refresh_token


def test_a_copy_of_the_config_is_said_not_to_be_saved(server, config):
    tap = config.parent / "tap_renewed.py"
    tap.write_text(tap.read_text().replace("config=config)", "config=dict(config))"))
    err = run(config).stderr
    assert "CRITICAL a new refresh token is NOT SAVED: config= was given a copy" in err


SECOND_STREAM = """
    import threading

    begun = threading.Event()

    @tap.sync("more", key_properties="id", schema={"properties": {"id": {"type": "integer"}}, "type": "object"})
    def more(client):
        begun.set()
        yield client.json("/rows")

    @tap.sync("first", key_properties="id", schema={"properties": {"id": {"type": "integer"}}, "type": "object"})
    def first():
        while True:
            time.sleep(0.05)
            yield {"id": 1}
"""


def test_stopped_while_a_worker_waits_for_the_reply(server, config):
    tap = config.parent / "tap_renewed.py"
    text = tap.read_text().partition("if __name__")[0]
    tap.write_text(text + textwrap.dedent(SECOND_STREAM) + "tap.cli()\n")
    config.write_text(json.dumps({**held(config), "workers": 2}))
    server.gate.clear()
    process = started(config, "--select", "first,more")
    try:
        waiting_for(server, 1)
        process.send_signal(signal.SIGTERM)
        time.sleep(2.5)  # longer than workers have for their last words
        server.gate.set()
        _out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert held(config)["refresh_token"] == server.refresh_token, err


# ---- without a process -----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """A config as a run has it, and its file."""
    path = tmp_path / "config.json"
    first = canary("first")
    path.write_text(json.dumps({"refresh_token": first, "login": {"refresh_token": first}, "n": 1}))
    loaded = load([path], environment={}, tap_name="tap-renewed")
    config = dict(loaded.config)
    return ConfigFiles(loaded, config), config, path


def test_what_a_refresh_function_puts_into_the_config_is_saved_at_once(server, files):
    _files, config, path = files

    def refresh(config):
        config["login"]["session"] = canary("own")
        config["access_token"] = server.new_token()

    seen = []

    class Looking(Client):
        def send(self, request, **more):
            reply = super().send(request, **more)
            seen.append(held(path))
            return reply

    Looking(server.url, auth=one_time(refresh, config=config)).get("/rows")
    assert seen == [config] and "session" in seen[0]["login"]


def run_of(path):
    """A client and config as a run of its own has them."""
    loaded = load([path], environment={}, tap_name="tap-renewed")
    config = dict(loaded.config)
    files = ConfigFiles(loaded, config)
    keys = ("token_url", "client_id", "client_secret")
    auth = oauth2_refresh(**{key: config[key] for key in keys}, config=config)
    return Client(config["url"], auth=auth), config, files


def test_two_runs_with_one_config_file_do_not_use_a_refresh_token_twice(server, config):
    """Servers that notice such a thing end the whole login."""
    one, _config_of_one, _files_of_one = run_of(config)
    two, config_of_two, _files_of_two = run_of(config)
    assert one.json("/rows") == [{"id": 0}]
    assert two.json("/rows") == [{"id": 0}]
    assert len(server.asked) == 1, "the access token that the other run has got is as good for this one"
    server.valid.clear()
    assert two.json("/rows") == [{"id": 0}]
    assert one.json("/rows") == [{"id": 0}]
    used = [form["refresh_token"] for form in server.asked]
    assert len(used) == len(set(used)) == 2
    assert held(config)["refresh_token"] == server.refresh_token == config_of_two["refresh_token"]


def test_a_token_of_another_run_that_is_about_to_run_out_is_not_taken(server, config):
    server.expires_in = 50
    one, _config_of_one, _files_of_one = run_of(config)
    two, _config_of_two, _files_of_two = run_of(config)
    one.get("/rows")
    two.get("/rows")
    assert len({form["refresh_token"] for form in server.asked}) == 2, "but its refresh token is"


def test_a_file_that_is_broken_or_gone_meanwhile_is_no_newer_one(server, config):
    """Each run goes on with what it has."""
    server.rotates = False
    one, _config_of_one, _files_of_one = run_of(config)
    two, _config_of_two, _files_of_two = run_of(config)
    config.write_text("{broken")
    assert one.json("/rows") == [{"id": 0}]
    config.unlink()
    assert two.json("/rows") == [{"id": 0}]
    assert len(server.asked) == 2


def test_a_key_of_the_environment_is_not_looked_for_in_files(server, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"refresh_token": "old"}')
    loaded = load([path], environment={"TAP_X_REFRESH_TOKEN": server.refresh_token}, tap_name="tap-x")
    config = dict(loaded.config)
    files = ConfigFiles(loaded, config)
    path.write_text('{"refresh_token": "new"}')
    Client(server.url, auth=oauth2_refresh(**server.oauth(), config=config)).get("/rows")
    assert [form["refresh_token"] for form in server.asked] == [loaded.config["refresh_token"]]
    assert files.config is config


def test_a_token_of_the_environment_is_said_to_be_lost(server, caplog):
    loaded = load((), environment={"TAP_X_REFRESH_TOKEN": server.refresh_token}, tap_name="tap-x")
    config = dict(loaded.config)
    files = ConfigFiles(loaded, config)
    caplog.set_level(logging.WARNING)
    Client(server.url, auth=oauth2_refresh(**server.oauth(), config=config)).get("/rows")
    assert "'refresh_token', which environment variable TAP_X_REFRESH_TOKEN sets: it is not saved" in caplog.text
    assert files.config is config
