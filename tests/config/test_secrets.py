"""Secrets: which keys hold one, and that they are shown nowhere."""

from __future__ import annotations

import base64
import copy
import json
import logging
import re
from urllib.parse import quote

import pytest

import burler
from burler.config import looks_secret, mask, scrub, secret_values
from support.taps import command


@pytest.mark.parametrize(
    "key",
    [
        "password", "db_password", "password_old", "passwd", "pass", "pwd", "passphrase", "secret", "clientSecret",
        "access_token", "refreshToken", "api_key", "apiKey", "api-key", "API_KEY", "x-api-key", "private_key",
        "aws_secret_access_key", "aws_access_key_id", "account_key", "credentials", "Authorization", "auth", "cookie",
        "bearer", "jwt", "pat", "github_pat", "otp", "subscription_key", "Ocp-Apim-Subscription-Key",
        "connection_string", "connectionString", "conn_str", "sas", "sas_url", "session_id", "sessionId", "x_signature",
        "X-Signature", "salt", "license", "license_key", "key", "KEY", "map_service_key", "signingKeyV", "webhook",
        "slackWebhookUrl", "passkey",
    ],
)  # fmt: skip
def test_secret_keys(key):
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        "url",
        "base_url",
        "user",
        "username",
        "start_date",
        "primary_key",
        "sort_key",
        "replicationKey",
        "keys",
        "keyword",
        "monkey",
        "path",
        "patch",
        "license_type",
        "salt_length",
        "session",
        "signature_version",
        "jwt_issuer",
        "webhook_events",
        "key_properties",
        "repo",
        "tap_id",
        "passage",
    ],
)
def test_other_keys(key):
    assert not looks_secret(key)


def test_mask_covers_every_depth_and_changes_nothing():
    config = {
        "token": "abc",
        "url": "https://me:pw12@host/x?y=1",
        "hook": "https://host/x?api_key=k2-k2&page=2&access_token=t3%20t3#here",
        "text": "is it a=b?token=c",
        "n": 5,
        "db": {"password": {"old": "a", "new": "b"}, "host": "h", "none": None},
        "auth": None,
        "list": [{"secret": 5}, "plain", ("x", {"api_key": ["k1"]})],
    }
    before = copy.deepcopy(config)
    assert mask(config) == {
        "token": "***",
        "url": "https://me:***@host/x?y=1",
        "hook": "https://host/x?api_key=***&page=2&access_token=***#here",
        "text": "is it a=b?token=c",
        "n": 5,
        "db": {"password": "***", "host": "h", "none": None},
        "auth": None,
        "list": [{"secret": "***"}, "plain", ["x", {"api_key": "***"}]],
    }
    assert config == before


def test_secret_values_are_found_at_every_depth():
    config = {"a": {"token": ["one1", {"b": "two2", "c": 12345, "d": True, "e": None, "f": "abc"}]}, "plain": "three3"}
    found = set(secret_values(config))
    assert found >= {"one1", "two2", "12345"} and not found & {"True", "None", "abc", "three3"}
    assert set(secret_values({"url": "postgresql://me:pass+word@h/db"})) >= {"pass+word"}


@pytest.mark.parametrize("secret", ["plain-1234", "q\"uo'te\\d", "new\nline-é", "a+b/c d=", "pct%41&x", "emoji 😀"])
def test_scrub_finds_a_secret_in_every_spelling(secret):
    secrets = tuple(secret_values({"token": secret}))
    places = [
        secret,
        repr(secret),
        json.dumps({"x": secret}),
        json.dumps(secret, ensure_ascii=False),
        quote(secret),
        quote(secret, safe=""),
    ]
    for text in places:
        assert "***" in scrub(f"<{text}>", secrets)
        for spelled in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret)):
            assert spelled not in scrub(f"<{text}>", secrets)


@pytest.mark.parametrize("secret", ["plain-1234", "pässword-1234", "пароль-1234", 'tab\t"é'])
def test_scrub_finds_the_bytes_of_a_secret(secret):
    secrets = tuple(secret_values({"token": secret}))
    places = [repr(secret.encode()), secret.encode().hex(), secret.encode().hex().upper(), ascii(secret)]
    if secret.isascii() or "ä" in secret:
        raw = secret.encode("latin-1")  # as HTTP sends it
        places += [repr(raw), raw.hex(), base64.b64encode(b"ann:" + raw).decode(), quote(raw)]
    places.append(re.sub(r"\\u(....)", lambda code: "\\u" + code[1].upper(), json.dumps(secret)))
    for text in places:
        assert "1234" not in scrub(text, secrets) and "***" in scrub(text, secrets), text


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"key": "name", "license": "MIT", "salt": "x9$k"}, ["x9$k"]),
        ({"key": "k-0815-x", "license": {"type": "pro", "code": "ABCD-EFGH"}}, ["k-0815-x", "ABCD-EFGH"]),
        ({"db": "Server=db;User ID=ann;Password=ab,cd=1;Port=1"}, ["ab,cd=1", "ab"]),
        ({"db": "host=db password='hush hush' user=ann"}, ["hush hush"]),
        ({"hub": "Endpoint=sb://h/;SharedAccessKeyName=Root1;SharedAccessKey=abc+/8=;X=1"}, ["abc+/8="]),
        ({"store": "AccountName=a;AccountKey=abc+/8==;X=1"}, ["abc+/8=="]),
    ],
)
def test_names_of_doubt_and_texts_for_drivers(config, found):
    assert set(secret_values(config)) >= {one for one in found if len(one) > 3}
    assert not any(one in json.dumps(mask(config)) for one in found if len(one) > 4)


def test_the_longest_secret_goes_first():
    assert scrub("abcdefgh abcd", ("abcd", "abcdefgh")) == "*** ***"
    assert scrub("nothing", ()) == "nothing"


# ---- in the log -----------------------------------------------------------------------------------


def test_what_a_tap_logs_shows_no_secret(tmp_path, caplog):
    """Also what is marked as one, what a tap gets on its way, what lies across a cut, and what is in METRIC lines."""
    secrets = {"text": {"type": "string"}, "marked": {"type": "string", "secret": True}}
    spec = {
        "type": "object",
        "properties": {
            "plain": secrets["marked"],
            "deep": {"type": "array", "items": {"type": "object", "properties": {"x": secrets["marked"]}}},
            "login": {"type": "object", "properties": {"x": secrets["marked"], "y": secrets["text"]}},
        },
    }
    tap = burler.tap("tap-x", config_spec=spec)
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    log = logging.getLogger("tap_x")

    @tap.sync('my"stream', schema=schema)
    def rows(config):
        log.warning("given: %s %s %s %s", "hush-hush", "softly-1", "first-one", "in-the-open")
        config["access_token"] = "second-one"
        config["login"] = {"x": "third-one", "y": "open-one"}
        log.warning("renewed: first-one second-one third-one open-one")
        config.clear()
        log.warning("gone: second-one third-one")
        yield [{"id": n} for n in range(1000)]

    @tap.sync("cut", schema=schema)
    def cut():
        raise ValueError("y" * 590 + "hunter2-and-more")

    @tap.sync("key", schema=schema)
    def key():
        raise ValueError("bad key:\n    MIIEvQIBADANBgkqh\n")

    path = tmp_path / "config.json"
    config = {"access_token": "first-one", "plain": "hush-hush", "deep": [{"x": "softly-1"}], "login": {}}
    config |= {"private_key": "-----BEGIN KEY-----\nMIIEvQIBADANBgkqh\nkiG9w0BAQEF", "auth_token": "hunter2-and-more"}
    config |= {"password": "sync", "secret": "counter", "api_key": 1000, "token": 'my"stream'}
    path.write_text(json.dumps(config))
    done = command(tap, "run", "--config", path)
    assert done.code == 1
    assert "given: *** *** *** in-the-open" in caplog.text
    assert "renewed: *** *** *** open-one" in caplog.text
    assert "gone: *** ***" in caplog.text
    assert "MIIE" not in done.stderr and "hunter2" not in done.stderr
    points = [json.loads(line.removeprefix("METRIC: ")) for line in done.lines("INFO") if line.startswith("METRIC: ")]
    counts = {point["tags"]["endpoint"]: point["value"] for point in points if point["metric"] == "record_count"}
    assert counts["***"] == 1000


# ---- cuts, lines, names ---------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["", "...", " ...", "'", ": field 'x' is wrong"])
def test_the_beginning_of_a_secret_before_a_cut(after):
    secrets = tuple(secret_values({"token": "eyJhbGciOiJIUzI1NiJ9.abcdefgh"}))
    assert scrub(f"row 'eyJhbGciOiJIUzI{after}", secrets) == f"row '***{after}"
    assert scrub("eyJhbGciABC", secrets) == "eyJhbGciABC"


def test_names_that_only_sound_secret():
    assert not [k for k in ("max_tokens", "token_url", "auth_type", "author", "authorName") if looks_secret(k)]
    assert all(map(looks_secret, ("author_token", "authorization", "pin", "auth_header")))


def test_numbers_are_secrets_where_there_is_no_doubt():
    config = {"tokens": 1000, "pin": 4321, "x": 5678, "auth": {"size": 2000, "on": True}}
    found = set(secret_values(config, marked={("x",)}))
    assert found >= {"4321", "5678"} and not found & {"1000", "2000", "True"}
    found = set(secret_values({"otp": 123456, "sort_key": 12345678}))
    assert "123456" in found and "12345678" not in found


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("postgresql://me:se@cret@localhost:5999/shop", ["se@cret", "me:se", "'se'", '"se"', "cret"]),
        ("http://me:pa/ss#word@host/x", ["pa/ss#word", "me:pa", "'pa'", '"pa"', "word"]),
        ("http://me:pass/word@host/x", ["pass/word", "pass", "word"]),
        ("http://[::1]:80/@me", []),
        ("https://ghp_0123456789abcdefghij@github.com/x.git", ["ghp_0123456789abcdefghij"]),
        ("https://ghp_0123456789abcdefghij:x-y@github.com", ["ghp_0123456789abcdefghij"]),
        ("https://a.host.with.a.long.name:8080/x@y", []),
        ("http://host:8080/users/@me", []),
        ("http://me:12345@host/x", ["12345"]),
        ("http://host:80/a?b=c@d", []),
        ("https://host/x?token=se%20cret&page=long-one", ["se%20cret", "se cret"]),
        ("https://host/x?page=2&key=AIza-0815&apikey=hush-0815", ["AIza-0815", "hush-0815"]),
        ("https://host/x?sig=abcdefgh&auth=basic&monkey_=12345678", ["abcdefgh"]),
    ],
)
def test_passwords_in_urls_that_somebody_forgot_to_encode(url, found):
    secrets = set(secret_values({"url": url}))
    assert secrets >= set(found) and bool(secrets) == bool(found)
    assert not any(one in mask({"url": url})["url"] for one in found)


@pytest.mark.parametrize(
    "shown",
    [
        r"abcd\/efgh+ijkl\/mnop==",
        r"abcd\u002fefgh\u002bijkl\u002fmnop\u003d\u003d",
        r"abcd\u002Fefgh\u002Bijkl\u002Fmnop\u003D\u003D",
        "abcd%2fefgh%2bijkl%2fmnop%3d%3d",
    ],
)
def test_a_secret_as_other_programs_spell_it(shown):
    assert (
        scrub(f"token {shown} is bad", tuple(secret_values({"token": "abcd/efgh+ijkl/mnop=="}))) == "token *** is bad"
    )
