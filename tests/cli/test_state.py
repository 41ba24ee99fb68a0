"""State that lives with the data: runs into a lake that go on from there, ``--full-refresh``, ``burler state``."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from burler.errors import LockLost
from burler.lake import LakeState, StateKeeper, load, open_store, read_lines
from support.cli import Ended, burler, shell

TAP = """
import os
from burler import Tap

tap = Tap("tap-shop", config_spec={"type": "object", "properties": {
    "account": {"type": "string", "default": "main"},
    "token": {"type": "string"},
    "member": {"type": "string", "secret": True},
    "page_size": {"type": "integer", "tuning": True},
    "db": {"type": "object", "properties": {"host": {}, "retries": {"type": "integer", "tuning": True}}},
}})
SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}


def most():
    return int(os.environ.get("MOST", "3"))


@tap.sync("orders", schema=SCHEMA, key_properties=["id"], replication_key="at", order="asc")
def orders(stream):
    for at in range(stream.bookmark or 1, most() + 1):
        yield {"id": at, "at": at}


@tap.sync("lines", parent="orders", schema={"properties": {"id": {"type": "string"}}}, key_properties=["id"])
def lines(parent):
    yield {"id": f"{parent['id']}.1"}


@tap.partitions("shops")
def regions():
    return [{"region": "eu"}, {"region": "us"}]


@tap.sync("shops", schema=SCHEMA, key_properties=["id"], replication_key="at", order="asc")
def shops(stream, partition):
    for at in range(stream.bookmark or 1, most() + 1):
        yield {"id": at + 100 * (partition["region"] == "us"), "at": at}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tap_shop.py").write_text(TAP)
    return tmp_path


def run(folder: Path, *args: str, **env: str) -> Ended:
    return burler("run", "tap_shop.py", "--sink", "lake:lake", *args, cwd=folder, **env)


def state(folder: Path, *args: str, stdin: Any = None) -> Any:
    data = b"" if stdin is None else json.dumps(stdin).encode()
    done = burler("state", *args, cwd=folder, stdin=data)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def kept(folder: Path) -> Any:
    """The bookmarks that the lake has."""
    return state(folder, "show", "lake")["bookmarks"]


def orders_in(folder: Path) -> list[int]:
    store = open_store(str(folder / "lake"))
    lines = (line for file in load(store, "tap-shop", "orders").files for line in read_lines(store, file.path))
    return [message["record"]["id"] for message in map(json.loads, lines) if message["type"] == "RECORD"]


# ---- runs -----------------------------------------------------------------------------------------------------------


def test_the_second_run_moves_only_what_is_new(folder: Path) -> None:
    assert run(folder).code == 0
    second = run(folder, MOST="5")
    assert second.code == 0 and "goes on from the state in the lake" in second.stderr
    assert orders_in(folder) == [1, 2, 3, 3, 4, 5]
    assert kept(folder)["shops"]["partitions"] == {'{"region":"eu"}': {"at": 5}, '{"region":"us"}': {"at": 5}}
    before = state(folder, "show", "lake/raw/tap-shop/state.previous.json")
    assert before["bookmarks"]["orders"]["at"] == 3
    assert "currently_syncing" not in (folder / "lake/raw/tap-shop/state.json").read_text()


def test_a_state_file_wins_over_the_lakes_state_and_takes_its_place(folder: Path) -> None:
    run(
        folder,
        MOST="5",
    )
    (folder / "old.json").write_text('{"bookmarks": {"orders": {"at": 2}}}')
    assert run(folder, "--state", "old.json", "--select", "orders", "-o", "copy.json", MOST="4").code == 0
    assert orders_in(folder) == [1, 2, 3, 4, 5, 2, 3, 4]
    assert kept(folder)["orders"]["at"] == 4
    assert kept(folder)["shops"]["partitions"]['{"region":"eu"}'] == {"at": 5}, "it did not run"
    assert json.loads((folder / "copy.json").read_text())["bookmarks"]["orders"]["at"] == 4


def test_what_a_state_file_says_of_streams_that_do_not_run_stays_out_of_the_lake(folder: Path) -> None:
    (folder / "old.json").write_text('{"bookmarks": {"orders": {"at": 3}, "other": {"at": 9}}}')
    assert run(folder, "--state", "old.json", "--select", "orders").code == 0
    assert list(kept(folder)) == ["orders"]
    assert kept(folder)["orders"]["at"] == 3, "it ran, and did not move"


def test_a_full_refresh_is_of_all_streams_or_of_those_that_are_named(folder: Path) -> None:
    run(folder)
    named = run(folder, "--full-refresh=orders")
    assert named.code == 0 and "--full-refresh: lines, orders" in named.stderr
    assert orders_in(folder) == [1, 2, 3, 1, 2, 3]
    assert named.messages[-1]["value"]["bookmarks"]["shops"]["partitions"]['{"region":"eu"}'] == {"at": 3}
    (folder / "s.json").write_text('{"bookmarks": {"orders": {"at": 3}}}')
    every = burler("run", "--full-refresh", "tap_shop.py", "--sink", "lake:lake", "--state", "s.json", cwd=folder)
    assert every.code == 0, "the word behind it is APP"
    assert orders_in(folder) == [1, 2, 3] * 3
    nothing = run(folder, "--full-refresh=")
    assert nothing.code == 2 and "names no stream" in nothing.stderr
    wrong = run(folder, "--full-refresh=ordres")
    assert wrong.code == 2 and "Did you mean 'orders'?" in wrong.stderr


def test_a_full_refresh_of_some_leaves_the_others_of_a_state_file_on_stdout(folder: Path) -> None:
    (folder / "s.json").write_text('{"bookmarks": {"orders": {"at": 3}, "shops": {"at": 3}}}')
    done = burler("run", "tap_shop.py", "--state", "s.json", "--full-refresh=orders", cwd=folder)
    counts = {
        name: sum(one.get("stream") == name and one["type"] == "RECORD" for one in done.messages)
        for name in ("orders", "shops")
    }
    assert counts == {"orders": 3, "shops": 2}


@pytest.mark.parametrize("look", [["--limit", "1"], ["--test"], ["--test=schema"]])
def test_a_look_neither_reads_nor_writes_it(folder: Path, look: list[str]) -> None:
    assert run(folder, *look).code == 0
    assert not list(folder.rglob("state*.json"))
    run(folder)
    before = kept(folder)
    assert run(folder, *look, TAP_SHOP_ACCOUNT="other").code == 0
    assert kept(folder) == before


def test_rows_whose_state_was_not_written_come_again(folder: Path) -> None:
    """As if it were killed between the commit and the state: the state is behind, never ahead."""
    run(folder)
    with mock.patch.object(StateKeeper, "save", side_effect=KeyboardInterrupt):
        killed = run(folder, MOST="5")
    assert killed.code != 0 and not killed.stdout, "no STATE is out that the lake has not"
    assert kept(folder)["orders"]["at"] == 3
    assert run(folder, MOST="5").code == 0
    assert orders_in(folder) == [1, 2, 3, 3, 4, 5, 3, 4, 5]


def beside(folder: Path, *other: str, **env: str) -> Any:
    """Another run comes and ends while one has begun, and has not written yet."""
    runs = StateKeeper.runs

    def after_another(keeper: StateKeeper, streams: Any, **more: Any) -> None:
        runs(keeper, streams, **more)
        with mock.patch.object(StateKeeper, "runs", runs):
            assert run(folder, *other, **env).code == 0

    return mock.patch.object(StateKeeper, "runs", after_another)


def test_of_two_runs_at_once_one_stops_before_its_next_state(folder: Path) -> None:
    run(folder)
    with beside(folder, "--select", "orders", MOST="9"):
        ended = run(folder, "--select", "orders", MOST="5")
    assert ended.code == 3 and "another run of 'tap-shop'" in ended.one_critical()
    assert not ended.stdout, "no STATE"
    assert kept(folder)["orders"]["at"] == 9
    assert orders_in(folder) == [1, 2, 3, *range(3, 10)], "it finds out before its first row"


def keeper(lake: LakeState, **given: Any) -> StateKeeper:
    """Of a run of two streams, from where the lake is."""
    run = StateKeeper(lake, begun=lake.read(), **{"start": lake.start() or {}, **given})
    run.runs({"orders", "shops"})
    return run


def bookmarks(**at: int) -> Any:
    return {"bookmarks": {name: {"at": value} for name, value in at.items()}}


def test_a_stream_has_succeeded_once_its_state_is_out(folder: Path) -> None:
    save = StateKeeper.save

    def lost_at_shops(keeper: StateKeeper, value: Any) -> None:
        if "shops" in value["bookmarks"]:
            raise LockLost("another run has moved 'shops'")
        save(keeper, value)

    def ended(**env: str) -> dict[str, str]:
        with mock.patch.object(StateKeeper, "save", lost_at_shops):
            assert run(folder, "--select", "orders,shops", "--report", "report.json", **env).code == 3
        return {one["stream"]: one["status"] for one in json.loads((folder / "report.json").read_text())["streams"]}

    assert ended() == {"orders": "unfinished", "shops": "unfinished"}, "the only STATE was to be of both"
    assert ended(TAP_SHOP_MAX_FILE_RECORDS="1") == {"orders": "succeeded", "shops": "unfinished"}


def test_a_run_stops_also_where_another_moved_a_stream_before_it_did(tmp_path: Path) -> None:
    lake = LakeState(open_store(str(tmp_path)), "tap-shop")
    keeper(lake).save(bookmarks(orders=3, shops=3))
    one, other = keeper(lake), keeper(lake)
    one.save(bookmarks(orders=3, shops=3))
    other.save(bookmarks(orders=9, shops=3))
    one.save(bookmarks(orders=3, shops=4))
    with pytest.raises(LockLost, match="'orders'"):
        one.save(bookmarks(orders=5, shops=4))
    assert lake.start() == bookmarks(orders=9, shops=4)


def test_what_a_run_does_not_say_of_its_streams_goes_and_of_others_stays(tmp_path: Path) -> None:
    lake = LakeState(open_store(str(tmp_path)), "tap-shop")
    keeper(lake).save(bookmarks(orders=3, shops=3))
    keeper(lake, start=bookmarks(orders=3, shops=3, other=1)).save(bookmarks(orders=3, shops=3, other=2))
    keeper(lake, start=bookmarks(shops=1)).save(bookmarks(shops=2))
    assert lake.start() == bookmarks(shops=2, other=2)


def test_a_bookmark_that_falls_back_to_where_the_run_began_falls_back_in_the_lake(tmp_path: Path) -> None:
    """As where rows turn out not to be sorted: else the rows between would never come."""
    lake = LakeState(open_store(str(tmp_path)), "tap-shop")
    first = keeper(lake)
    for state in bookmarks(orders=2), bookmarks():
        first.save(state)
    assert lake.start() == {}
    keeper(lake).save(bookmarks(orders=3, shops=3))
    run = keeper(lake)
    for at in 5, 3:
        run.save(bookmarks(orders=at, shops=3))
    assert lake.start() == bookmarks(orders=3, shops=3)


@pytest.mark.parametrize("said", [(4, 5), (3, 4, 5)], ids=["at once", "behind a state that says nothing new"])
def test_the_previous_state_is_the_one_from_before_the_run(tmp_path: Path, said: tuple[int, ...]) -> None:
    lake = LakeState(open_store(str(tmp_path)), "tap-shop")
    for at in 2, 3:
        keeper(lake).save(bookmarks(orders=at))
    run = keeper(lake)
    for at in said:
        run.save(bookmarks(orders=at))
    previous = json.loads((tmp_path / "raw/tap-shop/state.previous.json").read_text())
    assert (previous["value"], lake.start()) == (bookmarks(orders=3), bookmarks(orders=5))


def test_a_write_whose_first_reply_was_lost_is_the_runs_own(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    lake = LakeState(store, "tap-shop")
    keeper(lake).save(bookmarks(orders=3))
    replace = type(store).replace

    def told_as_a_conflict(*args: Any, **more: Any) -> None:
        with mock.patch.object(type(store), "replace", replace):
            store.replace(*args[1:], **more)
        raise FileExistsError  # the reply to a second try of the store's library

    run = keeper(lake)
    with mock.patch.object(type(store), "replace", told_as_a_conflict):
        run.save(bookmarks(orders=4))
    run.save(bookmarks(orders=5))
    assert lake.start() == bookmarks(orders=5)


def test_two_runs_of_other_streams_leave_each_others_entries(folder: Path) -> None:
    with beside(folder, "--select", "shops"):
        assert run(folder, "--select", "orders").code == 0
    assert kept(folder)["orders"]["at"] == 3
    assert kept(folder)["shops"]["partitions"]['{"region":"us"}'] == {"at": 3}


def test_of_two_first_runs_with_other_configs_one_stops(folder: Path) -> None:
    with beside(folder, "--select", "shops", TAP_SHOP_ACCOUNT="other"):
        ended = run(folder, "--select", "orders")
    assert ended.code == 3 and "'account'" in ended.one_critical()


def test_a_state_that_is_broken_is_no_state(folder: Path) -> None:
    run(folder)
    run(folder, MOST="4")
    path = folder / "lake/raw/tap-shop/state.json"
    path.write_text('{"type": "STATE"')
    ended = run(folder)
    assert ended.code == 2 and "state.previous.json" in ended.one_critical()
    assert "state: unreadable" in burler("lake", "ls", "lake", cwd=folder).text
    for narrowed in ([], ["--stream", "orders"]):
        checked = burler("lake", "check", "lake", *narrowed, cwd=folder)
        assert checked.code == 1 and "raw/tap-shop/state.json" in checked.text
    previous = (folder / "lake/raw/tap-shop/state.previous.json").read_bytes()
    assert burler("state", "set", "lake", cwd=folder, stdin=previous).code == 0
    assert kept(folder)["orders"]["at"] == 3
    assert burler("lake", "check", "lake", cwd=folder).code == 0


def test_care_leaves_it(folder: Path) -> None:
    run(folder)
    run(folder, MOST="4")
    before = sorted((path.name, path.read_bytes()) for path in folder.rglob("state*.json"))
    assert len(before) == 2
    for command in (["rebuild", "lake"], ["compact", "lake"], ["vacuum", "lake", "--older-than", "0", "--yes"]):
        assert burler("lake", *command, cwd=folder).code == 0
    assert sorted((path.name, path.read_bytes()) for path in folder.rglob("state*.json")) == before
    assert burler("lake", "check", "lake", cwd=folder).code == 0
    assert burler("lake", "read", "lake", cwd=folder).code == 0
    assert sorted((path.name, path.read_bytes()) for path in folder.rglob("state*.json")) == before
    assert (listed_state(folder) or "").startswith("20")


def test_it_is_told_of_a_tap_without_streams_too(folder: Path) -> None:
    run(folder)
    for stream in ("orders", "lines", "shops"):
        shutil.rmtree(folder / "lake/raw/tap-shop" / stream)
    listed = burler("lake", "ls", "lake", cwd=folder)
    assert listed.code == 0 and "tap-shop" in listed.text and "state: 20" in listed.text and "no streams" in listed.text
    assert burler("lake", "check", "lake", cwd=folder).code == 0
    (folder / "lake/raw/tap-shop/state.json").write_text("{")
    assert "state: unreadable" in burler("lake", "ls", "lake", "--tap", "tap-shop", cwd=folder).text
    checked = burler("lake", "check", "lake", cwd=folder)
    assert checked.code == 1 and "raw/tap-shop/state.json" in checked.text
    (folder / "lake/raw/tap-shop/state.json").unlink()
    assert "nothing in this lake" in burler("lake", "ls", "lake", cwd=folder).text


def listed_state(folder: Path) -> str | None:
    """What ``ls`` says of when the state was written."""
    listed = json.loads(burler("lake", "ls", "lake", "--json", cwd=folder).text)
    return listed["taps"][0]["state"]


def test_a_state_of_nothing_has_no_time_and_an_odd_time_is_none(folder: Path) -> None:
    run(folder)
    path = folder / "lake/raw/tap-shop/state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "written": 5}))
    assert listed_state(folder) is None and "orders" in kept(folder)
    run(folder, MOST="4")
    assert listed_state(folder) is not None
    state(folder, "reset", "lake")
    assert listed_state(folder) is None


# ---- another config -------------------------------------------------------------------------------------------------


def test_another_account_is_refused_with_the_keys_that_differ(folder: Path) -> None:
    run(folder, TAP_SHOP_DB__HOST="a")
    refused = run(folder, TAP_SHOP_DB__HOST="b", TAP_SHOP_ACCOUNT="other")
    assert refused.code == 2 and "'account', 'db.host' differ" in refused.one_critical()
    assert orders_in(folder) == [1, 2, 3]
    (folder / "s.json").write_text('{"bookmarks": {}}')
    assert run(folder, "--state", "s.json", TAP_SHOP_ACCOUNT="other").code == 2
    assert run(folder, "--full-refresh=orders", TAP_SHOP_ACCOUNT="other").code == 2
    assert run(folder, "--tap-id", "tap shop", TAP_SHOP_ACCOUNT="other").code == 0
    assert "accept lake --tap-id 'tap shop'" in run(folder, "--tap-id", "tap shop").one_critical().replace(
        str(folder) + "/", ""
    )


def test_secrets_settings_tuning_and_defaults_do_not_count(folder: Path) -> None:
    run(folder, TAP_SHOP_TOKEN="first-token", TAP_SHOP_MEMBER="0000", TAP_SHOP_PAGE_SIZE="10")
    more = {
        "TAP_SHOP_TOKEN": "second-token",
        "TAP_SHOP_MEMBER": "1111",
        "TAP_SHOP_PAGE_SIZE": "20",
        "TAP_SHOP_DB__RETRIES": "3",
    }
    assert run(folder, TAP_SHOP_START_DATE="2024-01-01T00:00:00Z", TAP_SHOP_ACCOUNT="main", **more).code == 0
    written = (folder / "lake/raw/tap-shop/state.json").read_text()
    assert not any(key in written for key in ("token", "member", "page_size"))


def test_a_full_refresh_takes_the_new_config_and_leaves_nothing_of_the_old(folder: Path) -> None:
    run(folder)
    done = run(folder, "--full-refresh", "--select", "orders", TAP_SHOP_ACCOUNT="other")
    assert done.code == 0 and list(kept(folder)) == ["orders"]
    assert run(folder, TAP_SHOP_ACCOUNT="other").code == 0
    assert run(folder).code == 2


def test_it_may_be_said_that_it_is_the_same_source(folder: Path) -> None:
    run(folder)
    assert burler("state", "accept", "lake", "--tap-id", "tap-shop", cwd=folder).code == 0
    assert run(folder, TAP_SHOP_ACCOUNT="renamed").code == 0
    assert orders_in(folder) == [1, 2, 3, 3]
    assert run(folder).code == 2


def test_what_the_tap_itself_changes_counts_no_more(tmp_path: Path) -> None:
    (tmp_path / "tap_x.py").write_text(
        """
from burler import Tap
tap = Tap("tap-x", config_spec={"account": "a", "round": 1})

@tap.sync("rows", schema={"properties": {"id": {"type": "integer"}}})
def rows(config):
    if config["round"] < 4:
        config["round"] += 1
    yield {"id": 1}
"""
    )
    (tmp_path / "c.json").write_text('{"account": "a", "round": 1}')
    command = ("run", "tap_x.py", "-c", "c.json", "--sink", "lake:lake")
    for number in range(2, 5):
        assert burler(*command, cwd=tmp_path).code == 0
        assert json.loads((tmp_path / "c.json").read_text())["round"] == number
    assert burler(*command, cwd=tmp_path).code == 0, "nothing changes in this run"
    (tmp_path / "c.json").write_text('{"account": "a", "round": 9}')
    assert burler(*command, cwd=tmp_path).code == 0
    assert burler(*command, cwd=tmp_path, TAP_X_ACCOUNT="b").code == 2


# ---- burler state ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["lake", "state.json"])
def test_entries_are_shown_set_and_reset(folder: Path, where: str) -> None:
    run(folder, "-o", "state.json")
    state(folder, "set", where, "orders", stdin={"at": 2})
    state(folder, "set", where, "shops", '{"region": "asia"}', stdin={"at": 7})
    assert state(folder, "show", where, "orders") == {"at": 2}
    assert state(folder, "show", where)["bookmarks"]["shops"]["partitions"]['{"region":"asia"}'] == {"at": 7}
    state(folder, "reset", where, "shops", '{ "region":"eu" }')
    assert set(state(folder, "show", where, "shops")["partitions"]) == {'{"region":"us"}', '{"region":"asia"}'}
    state(folder, "reset", where, "orders")
    unknown = burler("state", "show", where, "orders", cwd=folder)
    assert unknown.code == 2 and "It has: " in unknown.stderr
    state(folder, "reset", where)
    assert state(folder, "show", where) == {}
    state(folder, "set", where, stdin={"bookmarks": {"orders": {"at": 3}}})
    assert state(folder, "show", where) == {"bookmarks": {"orders": {"at": 3}}}


@pytest.mark.parametrize("where", ["lake", "state.json"])
def test_an_entry_does_not_take_the_place_of_a_whole_state(folder: Path, where: str) -> None:
    run(folder, "-o", "state.json")
    before = state(folder, "show", where)
    done = burler("state", "set", where, cwd=folder, stdin=b'{"at": 2}')
    assert done.code == 2 and "burler state set WHERE STREAM" in done.stderr
    empty = burler("state", "set", where, cwd=folder, stdin=b"")
    assert empty.code == 2 and "stdin is empty" in empty.stderr and "--state" not in empty.stderr
    assert state(folder, "show", where) == before


def test_an_entry_of_a_stream_that_the_state_did_not_have_is_told(folder: Path) -> None:
    run(folder)
    done = burler("state", "set", "lake", "ordres", cwd=folder, stdin=b'{"at": 2}')
    assert done.code == 0 and "no stream 'ordres'; it has now. Did you mean 'orders'?" in done.stderr
    assert "WARNING" not in burler("state", "set", "lake", "orders", cwd=folder, stdin=b'{"at": 2}').stderr


def test_a_lock_of_another_machine_counts_while_it_is_renewed(folder: Path) -> None:
    run(folder)
    lock = next((folder / "lake/raw/tap-shop/orders").glob("*/")) / "singerlake.lock"
    lock.write_text('{"writer-id": "far-away", "acquired": "", "updated": "", "epoch": 1, "ttl-ms": 60000}')
    held = burler("state", "reset", "lake", cwd=folder)
    assert held.code == 3 and "far-away" in held.stderr
    os.utime(lock, (1e9, 1e9))
    assert burler("state", "reset", "lake", cwd=folder).code == 0


def test_a_folder_that_was_removed_is_told_with_the_cure(folder: Path) -> None:
    warned = "the lake has nothing of it"
    run(folder, MOST="0")
    assert warned not in run(folder).stderr, "a stream that had no row has its folder all the same"
    shutil.rmtree(next(folder.glob("lake/raw/tap-shop/orders")))
    ended = run(folder, "--select", "orders,shops", MOST="5")
    told = [line for line in ended.stderr.splitlines() if warned in line]
    assert ended.code == 0 and len(told) == 1 and "--full-refresh=orders" in told[0] and orders_in(folder) == [3, 4, 5]
    shutil.rmtree(next(folder.glob("lake/raw/tap-shop/orders")))
    assert burler(*shlex.split(told[0].partition("after: burler ")[2]), cwd=folder).code == 0
    assert warned not in run(folder, MOST="5").stderr and orders_in(folder) == [1, 2, 3, 4, 5]
    shutil.rmtree(next(folder.glob("lake/raw/tap-shop/orders")))
    state(folder, "set", "lake", "orders", stdin={"at": 4})
    assert warned not in run(folder, MOST="5").stderr, "somebody says that it is to begin there"


def test_after_a_reset_the_stream_begins_anew(folder: Path) -> None:
    run(folder)
    state(folder, "reset", "lake", "orders")
    run(folder)
    assert orders_in(folder) == [1, 2, 3] * 2
    state(folder, "reset", "lake")
    assert run(folder, TAP_SHOP_ACCOUNT="other").code == 0, "nothing is left that another config could spoil"


def test_a_run_that_writes_holds_the_state(folder: Path) -> None:
    run(folder)
    save, codes = StateKeeper.save, []

    def meanwhile(keeper: StateKeeper, value: Any) -> None:
        for command in (["reset", "lake"], ["set", "lake", "orders"], ["accept", "lake"]):
            ended = burler("state", *command, cwd=folder, stdin=b"{}")
            codes.append((ended.code, "Nothing was changed" in ended.stderr))
        assert burler("state", "show", "lake", cwd=folder).code == 0
        save(keeper, value)

    with mock.patch.object(StateKeeper, "save", meanwhile):
        assert run(folder, MOST="4").code == 0
    assert set(codes) == {(3, True)}
    assert kept(folder)["orders"]["at"] == 4


def test_the_tap_is_to_be_named_where_there_are_several(folder: Path) -> None:
    (folder / "lake" / "raw").mkdir(parents=True)
    nobody = burler("state", "show", "lake", cwd=folder)
    assert nobody.code == 2 and "no tap in this lake yet" in nobody.stderr
    run(folder)
    run(folder, "--tap-id", "second")
    assert burler("state", "show", "lake", cwd=folder).code == 2
    assert state(folder, "show", "lake", "--tap-id", "second")["bookmarks"]["orders"]["at"] == 3
    unknown = burler("state", "show", "lake", "--tap-id", "secnd", cwd=folder)
    assert unknown.code == 2 and "Did you mean 'second'?" in unknown.stderr
    assert burler("state", "show", "nolake", cwd=folder).code == 2
    assert "without 'lake:': lake" in burler("state", "show", "lake:lake", cwd=folder).one_critical()
    assert burler("state", "set", "lake", "orders", "--tap-id", "second", cwd=folder, stdin=b"[]").code == 2


# ---- a pipe ---------------------------------------------------------------------------------------------------------


def test_a_lake_keeps_the_state_of_a_pipe_as_the_tap_said_it(tmp_path: Path) -> None:
    said = {"at": 0.1, "bookmarks": {"rows": {"x": "7", "partitions": [1]}}, "currently_syncing": "rows"}
    schema = {"type": "SCHEMA", "stream": "rows", "schema": {}, "key_properties": []}
    lines = [schema, {"type": "RECORD", "stream": "rows", "record": {"id": 1}}, {"type": "STATE", "value": said}]
    text = "".join(json.dumps(line) + "\n" for line in lines).replace("0.1,", "0.10000000000000000001,")
    (tmp_path / "messages").write_text(text)
    done = shell("$BURLER lake write lake --tap-id any < messages && $BURLER state show lake --tap-id any", tmp_path)
    shown = done.text.partition("\n")[2]
    del said["currently_syncing"]
    assert json.loads(shown) == said and "0.10000000000000000001" in shown
    newer = {**said, "bookmarks": {"rows": {"x": "8"}, "more": {}}}
    (tmp_path / "messages").write_text(
        "".join(json.dumps(one) + "\n" for one in [schema, {"type": "STATE", "value": newer}])
    )
    assert shell("$BURLER lake write lake --tap-id any < messages", tmp_path).code == 0
    assert state(tmp_path, "show", "lake") == newer


@pytest.mark.parametrize("said", ["{}", '{"bookmarks": null}', '{"orders": 3}'])
def test_a_run_follows_a_pipe_whose_state_has_no_bookmarks(folder: Path, said: str) -> None:
    schema = '{"type": "SCHEMA", "stream": "rows", "schema": {}, "key_properties": []}'
    (folder / "messages").write_text(f'{schema}\n{{"type": "STATE", "value": {said}}}\n')
    assert shell("$BURLER lake write lake --tap-id tap-shop < messages", folder).code == 0
    assert run(folder, "--full-refresh").code == run(folder).code == 0
    assert (orders_in(folder), kept(folder)["orders"]) == ([1, 2, 3, 3], {"at": 3})


def test_partitions_follow_what_was_null(tmp_path: Path) -> None:
    for said in ({"s": None}, {"s": {"partitions": {"a": {"id": 1}}}}):
        lines = [{"type": "SCHEMA", "stream": "s", "schema": {}, "key_properties": []}]
        lines.append({"type": "STATE", "value": {"bookmarks": said}})
        (tmp_path / "messages").write_text("".join(json.dumps(one) + "\n" for one in lines))
        assert shell("$BURLER lake write lake --tap-id any < messages", tmp_path).code == 0
        assert state(tmp_path, "show", "lake") == {"bookmarks": said}


def test_the_file_is_one_that_a_tap_takes(folder: Path) -> None:
    run(folder)
    path = LakeState(open_store(str(folder / "lake")), "tap-shop").place
    done = burler("run", "tap_shop.py", "--state", path, "--select", "orders", cwd=folder)
    assert [one["record"]["id"] for one in done.messages if one["type"] == "RECORD"] == [3]


def test_what_a_state_file_says_of_a_parent_that_is_read_unseen_stays_out_of_the_lake(folder: Path) -> None:
    (folder / "old.json").write_text('{"bookmarks": {"orders": {"at": 9}, "lines": {"parent_bookmark": {"at": 2}}}}')
    assert run(folder, "--state", "old.json", "--select", "lines").code == 0
    assert kept(folder) == {"lines": {"parent_bookmark": {"at": 3}}}, "the lake has no row of 'orders'"
    run(folder)
    assert orders_in(folder) == [1, 2, 3]


def test_an_entry_that_the_given_state_lacks_leaves_the_lake(folder: Path) -> None:
    run(folder)
    (folder / "none.json").write_text('{"bookmarks": {}}')
    assert run(folder, "--state", "none.json", "--select", "orders", MOST="0").code == 0
    assert "orders" not in kept(folder) and "shops" in kept(folder)


def test_two_runs_that_come_to_the_same_value_are_two_all_the_same(folder: Path) -> None:
    run(folder)
    with beside(folder, "--select", "orders", MOST="5"):
        assert run(folder, "--select", "orders", MOST="5").code == 3


def test_a_lock_of_another_machine_holds_the_state_until_it_is_old(folder: Path) -> None:
    run(folder)
    lock = next(folder.rglob("orders-*")).parent / "singerlake.lock"
    lock.write_text('{"writer-id": "elsewhere-1-1", "ttl-ms": 60000}')
    assert burler("state", "reset", "lake", "orders", cwd=folder).code == 3
    os.utime(lock, (0, 0))
    assert burler("state", "reset", "lake", "orders", cwd=folder).code == 0


def test_the_state_in_a_lake_is_changed_by_the_lakes_name_alone(folder: Path) -> None:
    run(folder)
    path = "lake/raw/tap-shop/state.json"
    for command in (["reset", path, "orders"], ["set", path]):
        ended = burler("state", *command, cwd=folder, stdin=b'{"bookmarks": {}}')
        assert ended.code == 2 and "--tap-id tap-shop" in ended.one_critical()
    assert run(folder).code == 0


def test_who_names_the_folder_of_tables_is_told_where_their_lake_is(folder: Path) -> None:
    run(folder)
    (folder / "tables").mkdir()
    (folder / "lake").rename(folder / "tables" / "_lake")
    done = burler("state", "show", "tables", cwd=folder)
    assert done.code == 2 and "The lake that they are made from is tables/_lake." in done.stderr
    assert state(folder, "show", "tables/_lake")["bookmarks"]["orders"]["at"] == 3
