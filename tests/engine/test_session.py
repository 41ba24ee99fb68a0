"""``Session``: what one run shares between its streams, and what two runs of a tap do not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tapprocess import python, write_tap

import burler
from burler.errors import BurlerError, ConfigError, DeclarationError
from burler.testing import discover, run_tap

FIELDS: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "integer"}}}


def tap_of(*streams: str) -> burler.Tap:
    tap = burler.tap("tap-session")
    for name in streams or ("rows",):
        tap.sync(name, schema=FIELDS)(lambda: [{"id": 1}])
    return tap


def asking() -> burler.Tap:
    """A tap whose function wants the client."""
    tap = burler.tap("tap-session")
    tap.sync("rows", schema=FIELDS)(lambda client: [])
    return tap


# ---- the client -----------------------------------------------------------------------------------


def test_the_client_is_made_once_a_run_whoever_asks_and_however_often():
    tap = burler.tap("tap-session")
    made: list[Any] = []

    @tap.client
    def client(config):
        made.append(config["n"])
        return {"n": config["n"]}

    tap.schema("a")(lambda client: {**FIELDS, "description": str(client["n"])})
    tap.metadata("a")(lambda client: None)
    tap.post_transform("a")(lambda record, client: record)
    tap.sync("a")(lambda client: [{"id": client["n"]}])
    tap.sync("b", schema=FIELDS)(lambda stream: [{"id": stream.client["n"]}, {"id": tap.client.get("n")}])
    run = run_tap(tap, {"n": 3})
    assert run.records("a") == [{"id": 3}]
    assert run.records("b") == [{"id": 3}, {"id": 3}]
    assert made == [3]
    run_tap(tap, {"n": 4})
    assert made == [3, 4]


def test_it_is_not_made_if_nobody_asks():
    tap = tap_of()
    tap.client(lambda: pytest.fail("made"))
    assert run_tap(tap).records("rows")
    assert list(discover(tap, {}).entries) == ["rows"]


def test_the_client_is_made_once_where_many_ask_at_once():
    tap = burler.tap("tap-session")
    made: list[Any] = []
    given: list[Any] = []

    @tap.client
    def client():
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    for name in "abcdefgh":
        tap.sync(name, schema=FIELDS)(lambda client: given.append(client) or [])
    run_tap(tap, {"workers": 8})
    assert len(made) == 1
    assert given == made * 8


def test_a_client_of_none_is_made_once_too():
    tap = burler.tap("tap-session")
    made: list[Any] = []
    given: list[Any] = []
    tap.client(lambda: made.append(1))
    for name in "ab":
        tap.sync(name, schema=FIELDS)(lambda client: given.append(client) or [])
    run_tap(tap)
    assert (made, given) == ([1], [None, None])


def test_a_client_that_fails_is_one_error_before_the_first_message(tmp_path: Path):
    path = write_tap(
        tmp_path,
        """
        import burler
        tap = burler.tap("tap-x", config_spec=["token"])
        @tap.client
        def client(config):
            raise PermissionError("401: " + config["token"])
        for name in ("a", "b"):
            tap.sync(name, schema=SCHEMA)(lambda client: [{"id": 1}])
        if __name__ == "__main__":
            tap.cli()
        """,
    )
    ended = python(path, cwd=tmp_path, TAP_X_TOKEN="hunter2hunter2")
    assert ended.code != 0
    assert ended.stdout == b""
    assert "the client function (tap_x.py:" in ended.one_critical()
    assert "PermissionError" in ended.one_critical()
    assert "hunter2" not in ended.stderr


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(0), StopIteration()])
def test_whatever_the_client_function_raises_is_one_error(error: BaseException):
    tap = asking()

    @tap.client
    def client():
        raise error

    with pytest.raises(
        BurlerError, match=r"tap-session: the client function \(.*test_session.py:\d+\) failed"
    ) as caught:
        run_tap(tap)
    assert type(error).__name__ in str(caught.value)


def test_an_error_of_burlers_own_comes_through_as_it_is():
    tap = asking()

    @tap.client
    def client():
        raise ConfigError("put the token into the config")

    with pytest.raises(ConfigError, match=r"^put the token"):
        run_tap(tap)


def test_a_tap_without_a_client():
    tap = burler.tap("tap-session")
    tap.sync("rows", schema=FIELDS)(lambda client: [])
    with pytest.raises(DeclarationError, match=r"stream 'rows' \(.*\): asks for 'client', but no @tap.client"):
        run_tap(tap)


class Closing:
    def __init__(self, error: Exception | None = None) -> None:
        self.closed = 0
        self.error = error

    def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("fails", [True, False])
def test_the_client_is_closed_however_the_run_ends(fails: bool):
    tap = burler.tap("tap-session")
    client = Closing()
    tap.client(lambda: client)

    @tap.sync("rows", schema=FIELDS)
    def rows(client):
        if fails:
            raise ValueError("boom")
        yield {"id": 1}

    assert bool(run_tap(tap).result.errors) == fails
    assert client.closed == 1


def test_the_client_is_closed_after_a_discovery_that_fails():
    tap = tap_of()
    client = Closing()
    tap.client(lambda: client)
    tap.metadata("rows")(lambda client: 1 / 0)
    with pytest.raises(DeclarationError):
        discover(tap, {})
    assert client.closed == 1


def test_a_client_that_can_not_be_closed_spoils_nothing(caplog: pytest.LogCaptureFixture):
    tap = burler.tap("tap-session")
    tap.client(lambda: Closing(OSError("gone")))
    tap.sync("rows", schema=FIELDS)(lambda client: [{"id": 1}])
    assert run_tap(tap).records("rows") == [{"id": 1}]
    assert "its client raised when it was closed: OSError: gone" in caplog.text


# ---- catalog ----------------------------------------------------------------------------------------


def test_the_catalog_is_made_once():
    tap = burler.tap("tap-session")
    calls = []

    @tap.schema("rows")
    def schema():
        calls.append(1)
        return FIELDS

    tap.sync("rows")(lambda: [])
    run_tap(tap)
    assert calls == [1]


def test_a_schema_function_of_several_streams_is_called_once():
    tap = burler.tap("tap-session")
    calls = []

    def schemas():
        calls.append(1)
        return {name: {**FIELDS, "description": name} for name in ("a", "b")}

    for name in ("a", "b"):
        tap.schema(name)(schemas)
        tap.sync(name)(lambda: [])
    entries = discover(tap, {}).entries
    assert [entries[name].schema["description"] for name in ("a", "b")] == ["a", "b"]
    assert calls == [1]


def test_a_catalog_that_failed_is_not_kept():
    tap = burler.tap("tap-session")
    tries = []

    @tap.schema("rows")
    def schema():
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("down")
        return FIELDS

    tap.sync("rows")(lambda: [])
    with pytest.raises(
        DeclarationError, match=r"stream 'rows'.*its schema function \(.*\) failed: ConnectionError: down"
    ):
        discover(tap, {})
    assert list(discover(tap, {}).entries) == ["rows"]


def test_what_describes_a_stream_may_ask_the_running_tap():
    tap = burler.tap("tap-session")
    tap.client(lambda config: {"fields": config["fields"]})
    tap.sync("rows", key_properties="id")(lambda: [])

    @tap.schema("rows")
    def schema():
        assert tap.key_properties == ("id",)
        assert tap.get_bookmark() is None
        return {"type": "object", "properties": {name: {"type": "integer"} for name in tap.client.get("fields")}}

    assert list(discover(tap, {"fields": ["id", "x"]}).entries["rows"].schema["properties"]) == ["id", "x"]


def test_two_sessions_of_a_tap_share_nothing():
    tap = burler.tap("tap-session")
    tap.client(lambda config: config["n"])
    tap.schema("rows")(lambda client: {"type": "object", "properties": {f"f{client}": {"type": "integer"}}})
    tap.sync("rows")(lambda client: [{f"f{client}": client}])
    for n in (1, 2):
        assert run_tap(tap, {"n": n}).records("rows") == [{f"f{n}": n}]


def test_two_taps_run_in_one_process_at_once():
    """Each on a thread of its own, one inside the other's sync function."""
    inner = burler.tap("tap-inner")
    inner.sync("rows", schema=FIELDS)(lambda stream: [{"id": 2}])
    outer = burler.tap("tap-outer")

    @outer.sync("rows", key_properties="id", replication_key="id", schema=FIELDS)
    def rows(stream):
        assert outer.get_bookmark() == 7
        got = run_tap(inner).records("rows")
        assert outer.get_bookmark() == 7
        with pytest.raises(BurlerError, match="outside a running stream"):
            inner.get_bookmark()
        yield from got

    run = run_tap(outer, state={"bookmarks": {"rows": {"id": 7}}})
    assert not run.result.errors
    assert run.records("rows") == [{"id": 2}]


# ---- instances of classes ---------------------------------------------------------------------------


def test_an_instance_a_stream_and_session():
    tap = burler.tap("tap-session")
    made = []

    @tap.stream
    class Rows(burler.Stream):
        names = ("a", "b")
        schema = FIELDS

        def __init__(self) -> None:
            made.append(self)
            self.seen = 0

        def sync(self):
            self.seen += 1
            yield {"id": self.seen}

        def post_transform(self, record):
            self.seen += 10
            return {**record, "id": self.seen}

    for runs in (1, 2):
        run = run_tap(tap)
        assert run.records("a") == run.records("b") == [{"id": 11}]
        assert len(made) == 2 * runs


def test_a_class_that_can_not_be_made_says_why():
    tap = burler.tap("tap-session")

    @tap.stream
    class Rows(burler.Stream):
        schema = FIELDS

        def __init__(self, client: Any) -> None:
            self.client = client

        def sync(self):
            return []

    error = None
    try:
        error = run_tap(tap).result.errors["rows"]
    except BurlerError as raised:
        error = raised
    assert "class Rows can't be made" in str(error)
    assert "by name" in str(error)


# ---- a tap's own code under guard ---------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), RecursionError()])
def test_what_describes_a_stream_and_fails_makes_one_error(error: BaseException):
    with pytest.raises(DeclarationError, match=r"its schema function \(.*:\d+\) failed: ") as caught:
        discover(raising(error), {})
    assert type(error).__name__ in str(caught.value)


def test_a_keyboard_interrupt_comes_through():
    with pytest.raises(KeyboardInterrupt):
        discover(raising(KeyboardInterrupt()), {})


def raising(error: BaseException) -> burler.Tap:
    tap = burler.tap("tap-session")
    tap.sync("rows")(lambda: [])

    @tap.schema("rows")
    def schema():
        raise error

    return tap
