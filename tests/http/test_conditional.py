"""ETags and Last-Modified over HTTP: what is asked, what 304 does, what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import burler
from burler.errors import BurlerError
from burler.testing import canary, run_tap
from support.servers import Asked, serving

ROW = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
MODIFIED, AS_RFC_3339 = "Tue, 07 May 2024 09:08:07 GMT", "2024-05-07T09:08:07Z"


class Server:
    """Resources with validators, by path: ``(validator headers, rows)``. ``instead``: the reply in their place."""

    def __init__(self) -> None:
        self.resources: dict[str, tuple[dict[str, str], Any]] = {}
        self.asked: list[Asked] = []
        self.url = ""
        self.instead: Any = None

    def answer(self, asked: Asked) -> Any:
        self.asked.append(asked)
        if self.instead is not None:
            return self.instead
        validators, rows = self.resources[asked.path]
        etag, modified = asked.headers.get("if-none-match"), asked.headers.get("if-modified-since")
        same = etag == validators.get("ETag") if etag else modified == validators.get("Last-Modified")
        return (304, validators, b"") if (etag or modified) and same else (200, validators, rows)

    def validators(self) -> list[tuple[str | None, str | None]]:
        """What the requests asked with, since the last time."""
        asked, self.asked = self.asked, []
        return [(one.headers.get("if-none-match"), one.headers.get("if-modified-since")) for one in asked]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with serving(made.answer) as running:
        made.url = running.url
        yield made


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"n{number}"} for number in numbers]


def one_resource(fn: Any = None, **options: Any) -> burler.Tap:
    tap = burler.tap("tap-t", config_spec={"type": "object"})
    tap.client(lambda config: burler.http.Client(config["url"], **config.get("client", {})))
    given = {"key_properties": "id", "source_state": True, "schema": ROW, **options}
    tap.sync("t", **given)(fn or (lambda client: [client.get("/t").content]))
    return tap


def kept(run: Any) -> Any:
    return run.states[-1].get("bookmarks", {}).get("t", {}).get("source_state")


def as_pages(client):
    yield from client.pages("/t")


def as_rows(client):
    yield from client.rows("/t")


def lazily(client):
    yield client.pages("/t")


def as_content(client):
    yield client.get("/t").content


def returned(client):
    return client.json("/t")


@pytest.mark.parametrize("fn", [as_pages, as_rows, lazily, as_content, returned])
@pytest.mark.parametrize(
    ("validators", "kind", "value", "asks"),
    [
        ({"ETag": '"abc"'}, "odf/etag", '"abc"', ('"abc"', None)),
        ({"ETag": 'W/"95c5fde3"', "Last-Modified": MODIFIED}, "odf/etag", 'W/"95c5fde3"', ('W/"95c5fde3"', None)),
        ({"Last-Modified": MODIFIED}, "odf/last-modified", AS_RFC_3339, (None, MODIFIED)),
    ],
)
def test_the_second_run_is_304(server: Server, fn: Any, validators: dict[str, str], kind: str, value: str, asks: Any):
    server.resources["/t"] = (validators, rows(1, 2))
    first = run_tap(one_resource(fn), {"url": server.url})
    assert first.records("t") == rows(1, 2)
    (entry,) = kept(first)
    assert (entry["kind"], entry["source"], entry["value"]) == (kind, "odf/polling", value)
    second = run_tap(one_resource(fn), {"url": server.url}, state=first.states[-1])
    assert second.result.errors == {}
    assert second.types == ["SCHEMA", "STATE"]
    assert second.states == [first.states[-1]]
    assert server.validators() == [(None, None), asks]


def test_a_change_comes_whole_and_its_validator_is_kept(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2))
    first = run_tap(one_resource(), {"url": server.url})
    server.resources["/t"] = ({"ETag": '"2"'}, rows(2, 3))
    second = run_tap(one_resource(), {"url": server.url}, state=first.states[-1])
    assert second.records("t") == rows(2, 3)
    assert second.types == ["SCHEMA", "STATE", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    assert "source_state" not in second.states[0]["bookmarks"]["t"]
    assert kept(second)[0]["value"] == '"2"'


def test_a_reply_without_validators_takes_the_entry_away(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    first = run_tap(one_resource(), {"url": server.url})
    server.resources["/t"] = ({}, rows(1))
    second = run_tap(one_resource(), {"url": server.url}, state=first.states[-1])
    assert kept(second) is None


@pytest.mark.parametrize(
    "header",
    ["", "yesterday", "Tue, 99 May 2024 09:08:07 GMT", "0", "Wed, 21 Oct 2015 07:28:00 +99999999999999999999"],
)
def test_a_last_modified_that_is_none(server: Server, header: str):
    server.resources["/t"] = ({"Last-Modified": header}, rows(1))
    assert kept(run_tap(one_resource(), {"url": server.url})) is None


@pytest.mark.parametrize("value", ["yesterday", "2024-05-07T09:08:07", "99999-01-01T00:00:00Z", ""])
def test_a_saved_time_that_is_none_is_ignored(server: Server, value: str):
    server.resources["/t"] = ({"Last-Modified": MODIFIED}, rows(1))
    state = run_tap(one_resource(), {"url": server.url}).states[-1]
    state["bookmarks"]["t"]["source_state"][0]["value"] = value
    second = run_tap(one_resource(), {"url": server.url}, state=state)
    assert second.records("t") == rows(1)
    assert server.validators() == [(None, None)] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"select": "t,!t.name"},
        {"config": {"client": {"params": {"lang": "de"}}}},
        {"config": {"client": {"headers": {"Accept-Language": "de"}}}},
        {"config": {"client": {"params": {"token": "WETH"}}}},
        {"config": {"client": {"headers": {"X-Account-Key": "acc-2"}}}},
        {"config": {"ignore_source_state": True}},
        {"limit": 5},
    ],
)
def test_everything_is_fetched_where_the_question_is_another(server: Server, change: dict[str, Any]):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    state = run_tap(one_resource(), {"url": server.url}).states[-1]
    config = {"url": server.url, **change.pop("config", {})}
    second = run_tap(one_resource(), config, state=state, **change)
    assert len(second.records("t")) == 1
    assert server.validators() == [(None, None)] * 2


def test_other_credentials_are_no_other_question(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    config = {"url": server.url, "client": {"token": canary("first")}}
    first = run_tap(one_resource(), config)
    assert "canary" not in json.dumps(first.states)
    config["client"] = {"token": canary("second")}
    assert run_tap(one_resource(), config, state=first.states[-1]).types == ["SCHEMA", "STATE"]


def test_an_error_after_the_reply(server: Server):
    """What the source said of itself counts with the last row of its body, not before."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2))

    def broken(client):
        for row in client.rows("/t"):
            yield row
            if row["id"] == 2:
                raise ValueError("over")

    run = run_tap(one_resource(broken, replication_key="id", replication_method="INCREMENTAL"), {"url": server.url})
    assert run.records("t") == rows(1, 2)
    assert kept(run) is None


def test_two_resources_are_one_too_many(server: Server):
    server.resources["/t"] = server.resources["/u"] = ({"ETag": '"1"'}, rows(1))

    def two(client):
        yield client.get("/t").content
        yield client.get("/u").content

    run = run_tap(one_resource(two), {"url": server.url})
    assert "client.conditional(path, source=...)" in str(run.result.errors["t"])


def test_an_authors_own_validator_is_left_alone(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))

    def own(client):
        yield client.get("/t", headers={"If-None-Match": '"0"'}).content

    first = run_tap(one_resource(own), {"url": server.url})
    second = run_tap(one_resource(own), {"url": server.url}, state=first.states[-1])
    assert second.records("t") == rows(1)


def test_the_tally_counts_it(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    counts = []

    def counted(client, stream):
        try:
            yield client.get("/t").content
        finally:
            counts.append(stream.tally.to_json())

    run_tap(one_resource(counted), {"url": server.url}, state=run_tap(one_resource(), {"url": server.url}).states[-1])
    assert counts == [{"bytes": 0, "not_modified": 1, "requests": 1}]


# ---- client.conditional ----------------------------------------------------------------------------------


def several(paths: dict[str, str], **options: Any) -> burler.Tap:
    def fn(client):
        asked = [client.conditional(path, source=source) for source, path in paths.items()]
        yield from asked

    return one_resource(fn, source_state=False, **options)


@pytest.mark.parametrize("options", [{"replication_key": "id"}, {}])
def test_several_resources_each_with_its_own(server: Server, options: dict[str, Any]):
    server.resources = {"/a": ({"ETag": '"a"'}, rows(1)), "/b": ({"Last-Modified": MODIFIED}, rows(2))}
    tap = several({"a": "/a", "b": "/b"}, **options)
    first = run_tap(tap, {"url": server.url})
    assert [(one["source"], one["kind"]) for one in kept(first)] == [("a", "odf/etag"), ("b", "odf/last-modified")]
    assert run_tap(tap, {"url": server.url}, state=first.states[-1]).types == ["SCHEMA", "STATE"]
    server.resources["/b"] = ({"Last-Modified": "Wed, 08 May 2024 09:08:07 GMT"}, rows(3))
    third = run_tap(tap, {"url": server.url}, state=first.states[-1])
    assert third.types == ["SCHEMA", "STATE", "RECORD", "STATE"]
    assert [one["source"] for one in third.states[0]["bookmarks"]["t"]["source_state"]] == ["a"]
    assert third.records("t") == rows(3)
    (record,) = [m for m in third.messages if m["type"] == "RECORD"]
    assert record.get("version") == first.states[-1]["bookmarks"]["t"].get("version")
    assert [one["value"] for one in kept(third)] == ['"a"', "2024-05-08T09:08:07Z"]


def test_it_needs_a_stream(server: Server):
    with burler.http.Client(server.url) as client, pytest.raises(BurlerError, match="outside a running stream"):
        client.conditional("/t")


def test_both_ways_at_once(server: Server):
    run = run_tap(one_resource(lambda client: client.conditional("/t")), {"url": server.url})
    assert "conditional already" in str(run.result.errors["t"])


def test_two_resources_under_one_name(server: Server):
    server.resources = {"/a": ({"ETag": '"a"'}, rows(1)), "/b": ({"ETag": '"b"'}, rows(2))}

    def fn(client):
        yield from client.conditional("/a")
        yield from client.conditional("/b")

    run = run_tap(one_resource(fn, source_state=False, replication_key="id"), {"url": server.url})
    assert "Name each: source='...'" in str(run.result.errors["t"])


def test_a_full_table_asks_for_all_before_its_first_row(server: Server):
    server.resources = {"/a": ({"ETag": '"a"'}, rows(1)), "/b": ({"ETag": '"b"'}, rows(2))}

    def one_by_one(client):
        yield from client.conditional("/a", source="a")
        yield from client.conditional("/b", source="b")

    tap = one_resource(one_by_one, source_state=False)
    first = run_tap(tap, {"url": server.url})
    server.resources["/a"] = ({"ETag": '"a2"'}, rows(3))
    second = run_tap(tap, {"url": server.url}, state=first.states[-1])
    assert "before the first row" in str(second.result.errors["t"])
    assert kept(second) == kept(first)[1:]


def test_rows_that_are_gathered_before_they_are_yielded(server: Server):
    """A page that was taken is no row that is out: the validator waits for the end of the function."""
    server.resources["/a"] = ({"ETag": '"a"'}, rows(*range(10)))

    def gathered(client):
        pages = list(client.conditional("/a"))
        for number, row in enumerate(row for page in pages for row in json.loads(page.data)):
            if number == 6:
                raise ConnectionError("gone")
            yield row

    options = {"source_state": False, "replication_key": "id", "order": "asc", "bookmark_strategy": "every_n(2)"}
    run = run_tap(one_resource(gathered, **options), {"url": server.url})
    assert len(run.records("t")) == 6
    assert all("source_state" not in one["bookmarks"]["t"] for one in run.states if one)


def test_a_page_that_nobody_took_counts_for_nothing(server: Server):
    server.resources["/a"] = ({"ETag": '"a"'}, rows(1))

    def forgotten(client):
        client.conditional("/a")
        return []

    run = run_tap(one_resource(forgotten, source_state=False), {"url": server.url})
    assert kept(run) is None


@pytest.mark.parametrize(
    "fn", [as_content, as_pages, lambda client: client.conditional("/t")], ids=["content", "pages", "conditional"]
)
def test_an_empty_reply_is_not_the_truth(server: Server, fn: Any):
    """It would empty the table at the target, and be remembered: 304 from then on."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    automatic = fn in (as_content, as_pages)
    state = run_tap(one_resource(fn, source_state=automatic), {"url": server.url}).states[-1]
    server.instead = 200, {"Content-Type": "application/json", "ETag": '"2"'}, b""
    server.asked.clear()
    config = {"url": server.url, "client": {"retries": 1, "max_wait_seconds": 0.2}}
    second = run_tap(one_resource(fn, source_state=automatic), config, state=state)
    assert second.result.exit_code == 1
    assert "ACTIVATE_VERSION" not in second.types
    assert kept(second) == state["bookmarks"]["t"]["source_state"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", " a", "\u2028", "x" * 70_000, "\x00"])
def test_a_saved_etag_that_no_header_can_hold_is_ignored(server: Server, value: str):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    state = run_tap(one_resource(), {"url": server.url}).states[-1]
    state["bookmarks"]["t"]["source_state"][0]["value"] = value
    second = run_tap(one_resource(), {"url": server.url}, state=state)
    assert second.records("t") == rows(1)
    assert server.validators()[-1] == (None, None)


def test_addresses_in_errors_have_no_secrets(server: Server):
    secret = canary("link")

    def two(client):
        yield from client.conditional("/a")
        yield from client.conditional(f"/b?access_token={secret}")

    server.resources = {"/a": ({}, rows(1)), "/b": ({}, rows(2))}
    run = run_tap(one_resource(two, source_state=False, replication_key="id"), {"url": server.url})
    assert secret not in str(run.result.errors["t"])


def test_a_login_by_get_is_none_of_the_streams_requests(server: Server):
    server.resources = {"/t": ({"ETag": '"1"'}, rows(1)), "/login": ({"ETag": '"9"'}, {"session": canary("session")})}

    def login(client):
        return client.json("/login")["session"]

    tap = burler.tap("tap-t", config_spec={"type": "object"})
    tap.client(lambda config: burler.http.Client(config["url"], auth=burler.http.one_time(login)))
    tap.sync("t", key_properties="id", source_state=True, schema=ROW)(as_content)
    first = run_tap(tap, {"url": server.url})
    assert first.result.errors == {}
    server.asked.clear()
    second = run_tap(tap, {"url": server.url}, state=first.states[-1])
    assert second.types == ["SCHEMA", "STATE"]
    assert sorted(server.validators(), key=str) == [('"1"', None), (None, None)]


def dying(client):
    """A function that dies behind its first row."""
    yield client.json("/t")[0]
    raise ConnectionError("gone")


@pytest.mark.parametrize("options", [{}, {"replication_key": "id"}])
def test_a_run_that_dies_among_rows_of_a_new_body_leaves_no_word_of_the_old_one(
    server: Server, options: dict[str, Any]
):
    """The source may go back to the body before: then 304 would leave the first row of the new one for good."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2))
    state = run_tap(one_resource(**options), {"url": server.url}).states[-1]
    server.resources["/t"] = ({"ETag": '"2"'}, rows(3, 4))
    died = run_tap(one_resource(dying, **options), {"url": server.url}, state=state)
    assert died.types.index("STATE") < died.types.index("RECORD")
    assert "source_state" not in died.states[0]["bookmarks"]["t"]
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2))
    back = run_tap(one_resource(**options), {"url": server.url}, state=died.states[0])
    assert back.records("t")[-1] == rows(2)[0]


def test_a_full_fetch_that_dies_is_not_forgotten(server: Server):
    """--ignore-source-state is for targets that were emptied: all rows have to come, if not in this run then later."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2))
    state = run_tap(one_resource(), {"url": server.url}).states[-1]
    config = {"url": server.url, "ignore_source_state": True}
    died = run_tap(one_resource(dying), config, state=state)
    assert all("source_state" not in one["bookmarks"]["t"] for one in died.states)
    after = run_tap(one_resource(), {"url": server.url}, state=died.states[-1])
    assert after.records("t") == rows(1, 2)
    whole = run_tap(one_resource(), config, state=state)
    assert kept(whole) == state["bookmarks"]["t"]["source_state"]


def test_a_validator_waits_for_the_last_row(server: Server):
    """With a STATE behind each row, none but the last one names the body."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1, 2, 3))

    def row_by_row(client):
        for row in client.json("/t"):  # noqa: UP028
            yield row

    options = {"replication_key": "id", "order": "asc", "bookmark_strategy": "every_n(1)"}
    run = run_tap(
        one_resource(row_by_row, **options),
        {"url": server.url},
    )
    named = ["source_state" in one["bookmarks"]["t"] for one in run.states]
    assert len(named) >= 3
    assert named == [False] * (len(named) - 1) + [True]


def test_a_retry_forgets_what_the_failed_try_heard(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))
    tries: list[int] = []

    def once_more(client, stream):
        tries.append(1)
        if len(tries) == 1:
            client.get("/t")
            raise TimeoutError
        yield {"id": 1}

    run = run_tap(one_resource(once_more, retry_sync_on=TimeoutError), {"url": server.url})
    assert len(tries) == 2
    assert kept(run) is None


@pytest.mark.parametrize("status", [203, 204, 404])
def test_an_answer_that_is_neither_takes_the_entry_away(server: Server, status: int):
    """It brings no rows, and the target drops those it has: a later 304 must not keep them away."""
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))

    def read(client):
        reply = client.get("/t", allow_statuses=(404,))
        return reply.json() if reply.status_code == 200 else []

    state = run_tap(one_resource(read), {"url": server.url}).states[-1]
    answers = {203: b"[]", 204: b"", 404: b"{}"}
    server.instead = status, {}, answers[status]
    second = run_tap(one_resource(read), {"url": server.url}, state=state)
    assert kept(second) is None
    server.instead = None
    assert run_tap(one_resource(read), {"url": server.url}, state=second.states[-1]).records("t") == rows(1)


def test_a_source_that_was_left_out_of_a_whole_table_is_read_again(server: Server):
    server.resources = {"/a": ({"ETag": '"a"'}, rows(1)), "/b": ({"ETag": '"b"'}, rows(2))}
    first = run_tap(several({"a": "/a", "b": "/b"}), {"url": server.url})
    server.resources["/a"] = ({"ETag": '"a2"'}, rows(3))
    second = run_tap(several({"a": "/a"}), {"url": server.url}, state=first.states[-1])
    assert second.types[-2:] == ["ACTIVATE_VERSION", "STATE"]
    assert [one["source"] for one in kept(second)] == ["a"]
    third = run_tap(several({"a": "/a", "b": "/b"}), {"url": server.url}, state=second.states[-1])
    assert rows(2)[0] in third.records("t")


def test_a_function_that_returns_early_in_one_run(server: Server):
    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))

    def read(client, config):
        return [] if config.get("off") else client.json("/t")

    state = run_tap(one_resource(read), {"url": server.url}).states[-1]
    second = run_tap(one_resource(read), {"url": server.url, "off": True}, state=state)
    assert run_tap(one_resource(read), {"url": server.url}, state=second.states[-1]).records("t") == rows(1)


@pytest.mark.parametrize("change", ["body", "session params", "session headers"])
def test_more_of_what_is_another_question(server: Server, change: str):
    import requests

    server.resources["/t"] = ({"ETag": '"1"'}, rows(1))

    def tap(other: bool) -> burler.Tap:
        session = requests.Session()
        if other and change == "session params":
            session.params = {"lang": "de"}
        if other and change == "session headers":
            session.headers["Accept-Language"] = "de"
        body = {"q": "b"} if other and change == "body" else {"q": "a"}
        tap = burler.tap("tap-t", config_spec={"type": "object"})
        tap.client(lambda config: burler.http.Client(config["url"], session=session))
        tap.sync("t", key_properties="id", source_state=True, schema=ROW)(
            lambda client: [client.get("/t", json=body).content]
        )
        return tap

    state = run_tap(tap(False), {"url": server.url}).states[-1]
    assert run_tap(tap(False), {"url": server.url}, state=state).types == ["SCHEMA", "STATE"]
    assert run_tap(tap(True), {"url": server.url}, state=state).records("t") == rows(1)


def test_a_resource_in_pages_is_none(server: Server):
    server.resources["/t"] = ({"ETag": '"1"', "Link": '</t?page=2>; rel="next"'}, rows(1))
    run = run_tap(one_resource(lambda client: client.conditional("/t"), source_state=False), {"url": server.url})
    assert "Use client.pages" in str(run.result.errors["t"])


def test_a_hook_may_ask_for_more(server: Server):
    """Requests of a post_transform are none of those that the option is about."""
    server.resources = {"/t": ({"ETag": '"1"'}, rows(1)), "/names": ({"ETag": '"9"'}, {"1": "one"})}
    tap = one_resource()

    @tap.post_transform("t")
    def named(record, client):
        return {**record, "name": client.json("/names")[str(record["id"])]}

    first = run_tap(tap, {"url": server.url})
    assert first.records("t") == [{"id": 1, "name": "one"}]
    assert [entry["value"] for entry in kept(first)] == ['"1"']
    assert run_tap(tap, {"url": server.url}, state=first.states[-1]).types == ["SCHEMA", "STATE"]
