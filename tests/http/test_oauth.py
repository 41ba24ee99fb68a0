"""OAuth 2 against a token server: what is sent, when a token is renewed, what is said when the server refuses."""

from __future__ import annotations

import pytest
import requests
from tokenserver import CLIENT_ID, answer, serving

from burler.errors import CredentialsError, DeclarationError
from burler.http import Client, oauth2_client_credentials, oauth2_refresh
from burler.testing import canary
from support.servers import echoed


@pytest.fixture
def server():
    with serving() as server:
        yield server


class Clock:
    """Two clocks that a test turns."""

    def __init__(self):
        self.wall = 1_700_000_000.0
        self.steady = 50.0

    def arguments(self):
        return {"now": lambda: self.wall, "monotonic": lambda: self.steady}

    def passes(self, seconds):
        self.wall += seconds
        self.steady += seconds


def client_of(server, auth, **more):
    return Client(server.url, auth=auth, sleep=lambda _seconds: None, **more)


@pytest.mark.parametrize("how", ["basic", "body"])
def test_a_refresh_token_gives_an_access_token(server, how):
    first = server.refresh_token
    auth = oauth2_refresh(**server.oauth(), refresh_token=first, client_auth=how, scope="read", extra={"audience": "x"})
    assert client_of(server, auth).json("/rows") == [{"id": 0}]
    wanted = {"grant_type": "refresh_token", "refresh_token": first, "scope": "read", "audience": "x", "client": how}
    if how == "body":
        wanted |= {"client_id": CLIENT_ID, "client_secret": server.client_secret}
    assert server.asked == [wanted]


def test_client_credentials(server):
    auth = oauth2_client_credentials(**server.oauth(), scope="a b")
    with client_of(server, auth) as client:
        assert client.json("/rows") == client.json("/rows") == [{"id": 0}]
    assert server.asked == [{"grant_type": "client_credentials", "scope": "a b", "client": "basic"}]


def test_a_client_without_a_secret_says_its_name_in_the_form(server):
    auth = oauth2_refresh(token_url=server.token_url, client_id="public", refresh_token=canary("r"))
    with pytest.raises(CredentialsError, match="invalid_client"):
        client_of(server, auth).get("/rows")
    assert server.asked[0]["client_id"] == "public" and "client_secret" not in server.asked[0]


def test_the_clients_own_credentials_and_headers_do_not_go_to_the_token_server(server):
    session = requests.Session()
    session.headers["X-Api-Key"] = canary("session")
    sent = []
    session.hooks["response"] = lambda response, **_more: sent.append(response.request)
    auth = oauth2_client_credentials(**server.oauth())
    client = Client(server.url, auth=auth, headers={"X-Token": canary("header")}, params={"v": "1"}, session=session)
    client.get("/rows")
    token_request, rows_request = sent
    assert token_request.path_url == "/token"
    assert not {"X-Token", "X-Api-Key"} & set(token_request.headers)
    assert {"X-Token", "X-Api-Key"} <= set(rows_request.headers)


def test_a_client_class_with_its_own_request_method_does_not_touch_the_request_for_a_token(server):
    class Own(Client):
        def request(self, method, path, **more):
            return super().request(method, "/rows", **{**more, "headers": {"Authorization": "mine"}})

    client = Own(server.url, auth=oauth2_client_credentials(**server.oauth()))
    assert client.get("/other").json() == [{"id": 0}]
    assert len(server.asked) == 1


def test_each_rotated_refresh_token_is_the_next_one_to_be_used(server):
    auth = oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token)
    client = client_of(server, auth)
    for _ in range(4):
        client.get("/rows")
        server.valid.clear()
    used = [form["refresh_token"] for form in server.asked]
    assert len(set(used)) == 4 and server.refresh_token not in used


def test_all_tokens_of_a_reply_are_masked_from_then_on(server):
    tokens = {name: canary(name) for name in ("access_token", "refresh_token", "id_token")}
    server.answers = [answer(tokens)]
    auth = oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token)
    client_of(server, auth).get("/rows", allow_statuses=(401,))
    assert "<***> <***> <***>" in echoed(" ".join(f"<{token}>" for token in tokens.values()))
    assert "<***>" in echoed(f"<{server.refresh_token}>"), "the one that was used, too"


def test_a_server_that_does_not_rotate(server):
    server.rotates = False
    config = {"refresh_token": server.refresh_token}
    client = client_of(server, oauth2_refresh(**server.oauth(), config=config))
    for _ in range(3):
        client.get("/rows")
        server.valid.clear()
    assert {form["refresh_token"] for form in server.asked} == {server.refresh_token}
    assert config["refresh_token"] == server.refresh_token


# ---- when ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expires_in", "works_until"), [(3600, 3539), ("3600", 3539), (100, 49), (1, 0.4), (3600.5, 3540)]
)
def test_a_token_is_renewed_before_it_runs_out(server, expires_in, works_until):
    server.expires_in = expires_in
    clock = Clock()
    client = client_of(server, oauth2_client_credentials(**server.oauth(), **clock.arguments()))
    client.get("/rows")
    clock.passes(works_until)
    client.get("/rows")
    assert len(server.asked) == 1
    clock.passes(1)
    client.get("/rows")
    assert len(server.asked) == 2
    assert [status for _path, _token, status in server.seen] == [200, 200, 200]


@pytest.mark.parametrize("expires_in", [None, 0, -5, "soon", True, [], "1e400", "nan"])
def test_a_lifetime_that_is_none_means_until_it_is_refused(server, expires_in):
    server.expires_in = expires_in
    clock = Clock()
    client = client_of(server, oauth2_client_credentials(**server.oauth(), **clock.arguments()))
    for _ in range(3):
        client.get("/rows")
        clock.passes(86400)
    assert len(server.asked) == 1
    server.valid.clear()
    server.expires_in = 3600
    client.get("/rows")
    assert len(server.asked) == 2


def test_a_clock_that_is_set_back_keeps_no_old_token(server):
    clock = Clock()
    client = client_of(server, oauth2_client_credentials(**server.oauth(), **clock.arguments()))
    client.get("/rows")
    clock.wall -= 86400
    clock.steady += 3599
    client.get("/rows")
    assert len(server.asked) == 2


def test_a_machine_that_slept_notices_on_the_wall(server):
    """The steady clock stands still meanwhile."""
    clock = Clock()
    client = client_of(server, oauth2_client_credentials(**server.oauth(), **clock.arguments()))
    client.get("/rows")
    clock.wall += 7200
    client.get("/rows")
    assert len(server.asked) == 2


def test_a_401_renews_once_and_the_next_401_is_an_error(server):
    server.uses = 0
    client = client_of(server, oauth2_refresh(**server.oauth(), refresh_token=server.refresh_token))
    with pytest.raises(CredentialsError) as caught:
        client.get("/rows")
    assert caught.value.status == 401
    assert "The new token was refused, too: has this login the right to read this?" in str(caught.value)
    assert len(server.asked) == 2 and len(server.seen) == 2


def test_the_same_token_again_is_not_tried_again(server):
    token = canary("same")
    server.answers = [answer({"access_token": token}) for _ in range(3)]
    client = client_of(server, oauth2_client_credentials(**server.oauth()))
    with pytest.raises(CredentialsError):
        client.get("/rows")
    assert len(server.seen) == 1 and len(server.asked) == 2


# ---- the config ------------------------------------------------------------------------------------


def test_tokens_are_kept_in_the_config_and_used_by_the_next_run(server):
    clock = Clock()
    config = {"refresh_token": server.refresh_token, "other": 1}
    client_of(server, oauth2_refresh(**server.oauth(), config=config, **clock.arguments())).get("/rows")
    assert config == {
        "refresh_token": server.refresh_token,
        "other": 1,
        "access_token": list(server.valid)[-1],
        "expires_at": "2023-11-14T23:13:20Z",
    }
    clock.passes(3000)
    client_of(server, oauth2_refresh(**server.oauth(), config=config, **clock.arguments())).get("/rows")
    assert len(server.asked) == 1
    clock.passes(550)
    client_of(server, oauth2_refresh(**server.oauth(), config=config, **clock.arguments())).get("/rows")
    assert len(server.asked) == 2


def test_a_saved_token_that_is_refused_is_renewed(server):
    config = {
        "refresh_token": server.refresh_token,
        "access_token": canary("old"),
        "expires_at": "2999-01-01T00:00:00Z",
    }
    client_of(server, oauth2_refresh(**server.oauth(), config=config)).get("/rows")
    assert [status for _path, _token, status in server.seen] == [401, 200]


@pytest.mark.parametrize("expires_at", [None, "", "tomorrow", True, "2000-01-01", [], float("nan")])
def test_a_saved_token_of_unknown_or_past_age_is_not_used(server, expires_at):
    config = {"refresh_token": server.refresh_token, "access_token": canary("old"), "expires_at": expires_at}
    client_of(server, oauth2_refresh(**server.oauth(), config=config)).get("/rows")
    assert len(server.seen) == 1 and len(server.asked) == 1


def test_a_token_of_unknown_age_takes_the_age_of_the_old_one_away(server):
    server.expires_in = None
    config = {"refresh_token": server.refresh_token, "access_token": canary("a"), "expires_at": "2000-01-01T00:00:00Z"}
    client_of(server, oauth2_refresh(**server.oauth(), config=config)).get("/rows")
    assert config == {"refresh_token": server.refresh_token, "access_token": list(server.valid)[-1]}


def test_keys_may_have_other_names_stand_deeper_and_be_left_out(server):
    config = {"login": {"rt": server.refresh_token, "until": 5}}
    auth = oauth2_refresh(
        **server.oauth(), config=config["login"], refresh_token_key="rt", expires_at_key="until", access_token_key="at",
        **Clock().arguments(),
    )  # fmt: skip
    client_of(server, auth).get("/rows")
    assert config["login"] == {"rt": server.refresh_token, "until": 1_700_003_600, "at": list(server.valid)[-1]}
    config = {"refresh_token": server.refresh_token}
    auth = oauth2_refresh(**server.oauth(), config=config, access_token_key=None, expires_at_key=None)
    client_of(server, auth).get("/rows")
    assert config == {"refresh_token": server.refresh_token}


def test_without_a_refresh_token_nothing_is_asked(server):
    for more in ({"config": {}}, {}, {"refresh_token": ""}, {"config": {"refresh_token": None}}):
        with pytest.raises(DeclarationError, match="Log in once"):
            oauth2_refresh(**server.oauth(), **more)


def test_it_works_with_requests_alone(server):
    auth = oauth2_client_credentials(**server.oauth())
    assert requests.get(f"{server.url}/rows", auth=auth, timeout=10).json() == [{"id": 0}]
