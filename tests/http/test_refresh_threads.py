"""Renewals seen by many threads, and in a run: one at a time, one result for all, one error for all."""

from __future__ import annotations

import contextlib
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from tokenserver import answer, refusal, serving

import burler
from burler.errors import CredentialsError, HttpError
from burler.http import Client, oauth2_client_credentials, oauth2_refresh, one_time
from burler.testing import run_tap
from support.clocks import until

REMEMBERED_SECONDS = 30  # as docs/credentials.md has it


@pytest.fixture
def server():
    with serving() as server:
        yield server


def client_of(server, auth, **more):
    return Client(server.url, auth=auth, sleep=lambda _seconds: None, **more)


def together(count, action):
    """Call an action in several threads at once; what each gave or raised."""
    barrier = threading.Barrier(count)

    def one(_i):
        barrier.wait(20)
        try:
            return action()
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_threads_wait_for_one_renewal_and_use_it(server):
    server.slow_seconds = 0.2
    client = client_of(server, oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token))
    assert [reply.status_code for reply in together(12, lambda: client.get("/rows"))] == [200] * 12
    assert len(server.asked) == 1
    server.valid.clear()
    assert [reply.status_code for reply in together(12, lambda: client.get("/rows"))] == [200] * 12
    assert len(server.asked) == 2, "all were refused with the same token"


def test_a_401_for_a_token_that_was_renewed_meanwhile_renews_nothing(server):
    auth = oauth2_client_credentials(**server.oauth())
    client = client_of(server, auth)
    late = requests.Request("GET", f"{server.url}/rows").prepare()
    auth.apply(late)
    server.valid.clear()
    client.get("/rows")
    assert len(server.asked) == 2
    response = requests.Session().send(late, timeout=10)
    assert response.status_code == 401
    assert auth.refused(response) is True
    assert len(server.asked) == 2


def test_a_failed_renewal_fails_all_with_one_error_and_is_not_repeated(server):
    server.slow_seconds = 0.2
    server.answers = [refusal(400, "invalid_grant") for _ in range(50)]
    seconds = [1000.0]
    clocks = {"now": lambda: seconds[0], "monotonic": lambda: seconds[0]}
    auth = oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token, **clocks)
    client = client_of(server, auth)
    errors = together(10, lambda: client.get("/rows"))
    assert len({id(error) for error in errors}) == 1 and isinstance(errors[0], CredentialsError)
    assert len(server.asked) == 1
    seconds[0] += REMEMBERED_SECONDS - 1
    with pytest.raises(CredentialsError):
        client.get("/rows")
    assert len(server.asked) == 1, "who comes a little later is spared the question, too"
    server.answers.clear()
    seconds[0] += 1
    assert client.json("/rows") == [{"id": 0}]


def test_a_token_that_still_lasts_serves_while_the_token_server_is_down(server, caplog):
    seconds = [1000.0]
    server.expires_in = 600
    auth = oauth2_client_credentials(**server.oauth(), now=lambda: seconds[0], monotonic=lambda: seconds[0])
    client = client_of(server, auth, retries=0)
    client.get("/rows")
    server.answers = [answer(b"", 503) for _ in range(9)]
    seconds[0] += 541
    assert client.json("/rows") == client.json("/rows") == [{"id": 0}]
    assert "503" in caplog.text and "the token that there is lasts a little longer" in caplog.text
    assert len(server.asked) == 2
    seconds[0] += 57
    with pytest.raises(HttpError):
        client.get("/rows")
    server.answers.clear()
    seconds[0] += REMEMBERED_SECONDS
    assert client.json("/rows") == [{"id": 0}]


def test_a_renewal_that_hangs_has_a_limit(server):
    server.gate.clear()
    client = client_of(server, oauth2_client_credentials(**server.oauth(), limit_seconds=0.4))
    errors = together(3, lambda: client.get("/rows"))
    assert all("has not come back for 0.4 seconds" in str(error) for error in errors), errors
    assert not server.seen


def test_a_renewal_that_comes_late_counts(server):
    """It holds the only refresh token that is good for anything."""
    config = {"refresh_token": server.refresh_token}
    server.gate.clear()
    client = client_of(server, oauth2_refresh(**server.oauth(), config=config, limit_seconds=0.3))
    with pytest.raises(CredentialsError):
        client.get("/rows")
    server.gate.set()

    def rows():
        with contextlib.suppress(CredentialsError):
            return client.json("/rows")

    assert until(rows, "rows come") == [{"id": 0}]
    assert config["refresh_token"] == server.refresh_token and len(server.asked) == 1
    server.valid.clear()
    assert client.json("/rows") == [{"id": 0}], "the error of then is forgotten"


def test_after_one_that_hangs_for_ever_there_may_be_another(server):
    seconds, calls, release = [1000.0], [], threading.Event()

    def refresh():
        calls.append(server.new_token())
        if len(calls) == 1:
            release.wait(30)
        return calls[0] if len(calls) == 1 or release.is_set() else calls[-1]

    auth = one_time(refresh, limit_seconds=0.2, now=lambda: seconds[0], monotonic=lambda: seconds[0])
    client = client_of(server, auth)
    with pytest.raises(CredentialsError):
        client.get("/rows")
    hanging = next(thread for thread in threading.enumerate() if thread.name == "burler-renewal")
    seconds[0] += REMEMBERED_SECONDS
    client.get("/rows")
    release.set()
    hanging.join(20)
    client.get("/rows")
    assert [token for _path, token, _status in server.seen] == [f"Bearer {calls[1]}"] * 2, "the later one stays"


def test_a_run_that_is_stopped_waits_a_moment_for_the_reply_on_its_way(server):
    """The signal comes while the main thread waits for the renewal."""
    config = {"refresh_token": server.refresh_token}
    server.slow_seconds = 0.5

    class Stop(BaseException):
        pass

    def stop(_number, _frame):
        raise Stop

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        client = client_of(server, oauth2_refresh(**server.oauth(), config=config))
        timer = threading.Timer(0.15, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
        timer.start()
        with pytest.raises(Stop):
            client.get("/rows")
    finally:
        signal.signal(signal.SIGUSR1, before)
        timer.join()
    assert len(server.asked) == 1
    assert config["refresh_token"] == server.refresh_token


def test_a_client_that_is_closed_waits_a_moment_for_a_renewal_of_another_thread(server):
    config = {"refresh_token": server.refresh_token}
    server.gate.clear()
    client = client_of(server, oauth2_refresh(**server.oauth(), config=config))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.get, "/rows")
        until(lambda: server.waiting, "it asks for a token")
        threading.Timer(0.3, server.gate.set).start()
        client.auth.close()
        assert config["refresh_token"] == server.refresh_token and "access_token" in config
        asked.result(20)
    client.auth.close()  # with nothing under way


# ---- in a run --------------------------------------------------------------------------------------


def tap_of(make_auth):
    tap = burler.tap("tap-renewed", config_spec={"type": "object", "properties": {}})

    @tap.client
    def client(config):
        return Client(config["url"], auth=make_auth(config), sleep=lambda _seconds: None)

    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}

    @tap.sync("rows", key_properties="id", schema=schema, replication_key="id", workers=4)
    def rows(client, partition, stream):
        tap.tally = stream.tally
        for i in range(5):
            yield client.json("/rows", params={"from": partition["n"] * 1000 + i})

    @tap.partitions("rows")
    def partitions():
        return [{"n": n} for n in range(8)]

    return tap


def test_a_tap_with_workers_gets_all_rows_though_the_token_dies_under_it(server):
    server.first_uses = [10]
    tap = tap_of(lambda config: oauth2_refresh(**server.oauth(), config=config))
    out = run_tap(tap, {"url": server.url, "refresh_token": server.refresh_token})
    assert not out.result.errors
    assert {row["id"] for row in out.records("rows")} == {n * 1000 + i for n in range(8) for i in range(5)}
    refused = [token for _path, token, status in server.seen if status == 401]
    assert refused and len(set(refused)) == 1 and len(server.asked) == 2
    counts = tap.tally.to_json()
    assert counts["refreshes"] == 2 and counts["requests"] == 40 + len(refused) + 2, "those for tokens count as well"


def test_a_login_that_is_over_is_one_question_and_an_error_for_each_part(server, caplog):
    server.answers = [refusal(400, "invalid_grant") for _ in range(50)]
    tap = tap_of(lambda config: oauth2_refresh(**server.oauth(), config=config))
    out = run_tap(tap, {"url": server.url, "refresh_token": server.refresh_token})
    assert out.result.exit_code == 1
    failures = out.result.errors["rows"].failures
    assert len(failures) == 8 and all("invalid_grant" in str(failure.error) for failure in failures)
    assert caplog.text.count("invalid_grant") == 8
    assert len(server.asked) == 1 and not server.seen
