"""Statements that the tap signs: what stands in them, and that keys show nowhere. The judge is PyJWT's other half."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tokenserver import CLIENT_ID, answer, refusal, serving

from burler.errors import CredentialsError, DeclarationError
from burler.http import Client, jwt_assertion
from burler.testing import canary
from support.servers import echoed

NOW = 1_700_000_000


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def keys(rsa_key):
    """By algorithm: what signs, and what the server checks with."""
    curve = ec.generate_private_key(ec.SECP256R1())
    shared = canary("shared-secret-of-enough-length")
    return {
        "RS256": (pem(rsa_key), rsa_key.public_key()),
        "ES256": (pem(curve), curve.public_key()),
        "HS256": (shared, shared),
    }


class Judge:
    """Answers token requests by the statement in them."""

    def __init__(self, server, key, algorithm):
        self.server, self.key, self.algorithm = server, key, algorithm
        self.claims, self.headers = [], []
        self.form = None
        server.token_reply = self

    def __call__(self, form):
        self.form = form
        text = form["assertion"]
        try:
            options = {"verify_exp": False, "verify_iat": False}
            claims = jwt.decode(
                text, self.key, algorithms=[self.algorithm], audience=self.server.token_url, options=options
            )
        except jwt.InvalidTokenError as error:
            return refusal(400, "invalid_grant", f"{error}: {text}")
        self.claims.append(claims)
        self.headers.append(jwt.get_unverified_header(text))
        return answer({"access_token": self.server.new_token(), "expires_in": 3600})


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "HS256"])
def test_a_statement_is_signed_and_gives_a_token(server, keys, algorithm):
    private, public = keys[algorithm]
    judge = Judge(server, public, algorithm)
    auth = jwt_assertion(
        key=private, issuer="me@x", subject="you@x", token_url=server.token_url, scope="read", algorithm=algorithm,
        key_id="k1", claims={"extra": [1]}, now=lambda: NOW, monotonic=lambda: 5,
    )  # fmt: skip
    client = Client(server.url, auth=auth)
    assert client.json("/rows") == client.json("/rows") == [{"id": 0}]
    assert judge.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    [claims] = judge.claims
    assert claims.pop("jti")
    assert claims == {
        "iss": "me@x", "sub": "you@x", "aud": server.token_url, "scope": "read", "extra": [1],
        "iat": NOW - 10, "exp": NOW + 300,
    }  # fmt: skip
    assert judge.headers == [{"alg": algorithm, "typ": "JWT", "kid": "k1"}]


def test_each_statement_is_a_new_one(server, keys):
    private, public = keys["RS256"]
    judge = Judge(server, public, "RS256")
    client = Client(server.url, auth=jwt_assertion(key=private, issuer="me", token_url=server.token_url))
    client.get("/rows")
    server.valid.clear()
    client.get("/rows")
    assert len({claims["jti"] for claims in judge.claims}) == 2


def test_a_key_from_an_environment_variable_has_its_line_breaks_as_two_signs(server, keys):
    private, public = keys["RS256"]
    Judge(server, public, "RS256")
    auth = jwt_assertion(key=private.replace("\n", "\\n"), issuer="me", token_url=server.token_url)
    assert Client(server.url, auth=auth).json("/rows") == [{"id": 0}]


def test_the_statement_itself_may_be_the_token(server, keys):
    shared, _ = keys["HS256"]
    clock = [float(NOW)]
    auth = jwt_assertion(
        key=shared, issuer="me", audience="api", algorithm="HS256", now=lambda: clock[0], monotonic=lambda: clock[0]
    )
    client = Client(server.url, auth=auth)
    for passed in (0, 239, 1):
        clock[0] += passed
        client.get("/rows", allow_statuses=(401,))
    sent = [credentials.removeprefix("Bearer ") for _path, credentials, _status in server.seen]
    assert len(set(sent)) == 2 and sent[0] == sent[1], "it is signed anew a minute before it runs out"
    claims = jwt.decode(sent[0], shared, algorithms=["HS256"], audience="api", options={"verify_exp": False})
    assert (claims["iss"], claims["exp"]) == ("me", NOW + 300)
    assert "<***>" in echoed(f"<{sent[0]}>")


def test_a_refusal_tells_of_clock_and_key_and_does_not_show_the_statement(server, keys):
    Judge(server, keys["ES256"][1], "ES256")
    auth = jwt_assertion(key=keys["RS256"][0], issuer="me", token_url=server.token_url)
    with pytest.raises(CredentialsError) as caught:
        Client(server.url, auth=auth).get("/rows")
    text = str(caught.value)
    assert "invalid_grant" in text and "the clock of this machine" in text
    assert "eyJ" not in text


def test_a_secret_of_the_client_goes_along(server, keys):
    private, public = keys["RS256"]
    judge = Judge(server, public, "RS256")
    auth = jwt_assertion(key=private, issuer="me", **server.oauth(), extra={"client_assertion_type": "x"})
    Client(server.url, auth=auth).get("/rows")
    assert judge.form["client"] == "body" and judge.form["client_id"] == CLIENT_ID


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"key": ""}, "key is empty"),
        ({"key": None}, "key is empty"),
        ({"issuer": ""}, "issuer is empty"),
        ({"key": "canary-s3cr3t-no-pem"}, "can't sign with RS256"),
        ({"key": "-----BEGIN PRIVATE KEY-----\ncanarys3cr3t\n-----END PRIVATE KEY-----"}, "can't sign with RS256"),
        ({"algorithm": "ES256"}, "can't sign with ES256"),
        ({"algorithm": "none"}, "can't sign with none"),
        ({"algorithm": "RS-256"}, "can't sign with RS-256"),
        ({"claims": {"x": object()}}, "can't sign"),
    ],
)
def test_what_can_not_sign_shows_at_once_and_without_the_key(keys, change, fact):
    given = {"key": keys["RS256"][0], "issuer": "me", "token_url": "https://x/token", **change}
    with pytest.raises(DeclarationError) as caught:
        jwt_assertion(**given)
    assert fact in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__, "what a traceback shows as well"
