"""Secrets: which keys hold one, and that they are shown nowhere."""

from __future__ import annotations

import copy
import json
from urllib.parse import quote

import pytest

from burler.config import looks_secret, mask, scrub, secret_values


@pytest.mark.parametrize(
    "key",
    [
        "password", "db_password", "password_old", "passwd", "pass", "pwd", "passphrase", "secret", "clientSecret",
        "access_token", "refreshToken", "api_key", "apiKey", "api-key", "API_KEY", "x-api-key", "private_key",
        "aws_secret_access_key", "aws_access_key_id", "account_key", "credentials", "Authorization", "auth", "cookie",
        "bearer",
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
        "key",
        "primary_key",
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
        "n": 5,
        "db": {"password": {"old": "a", "new": "b"}, "host": "h", "none": None},
        "auth": None,
        "list": [{"secret": 5}, "plain", ("x", {"api_key": ["k1"]})],
    }
    before = copy.deepcopy(config)
    assert mask(config) == {
        "token": "***",
        "url": "https://me:***@host/x?y=1",
        "n": 5,
        "db": {"password": "***", "host": "h", "none": None},
        "auth": None,
        "list": [{"secret": "***"}, "plain", ["x", {"api_key": "***"}]],
    }
    assert config == before


def test_secret_values_are_found_at_every_depth():
    config = {"a": {"token": ["one1", {"b": "two2", "c": 12345, "d": True, "e": None, "f": "abc"}]}, "plain": "three3"}
    assert set(secret_values(config)) == {"one1", "two2", "12345"}
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


def test_the_longest_secret_goes_first():
    assert scrub("abcdefgh abcd", ("abcd", "abcdefgh")) == "*** ***"
    assert scrub("nothing", ()) == "nothing"
