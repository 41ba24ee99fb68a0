"""The client: what may be given as one, and ``tap.client`` inside and outside of a run."""

from __future__ import annotations

import contextvars
import copy
import functools
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

import burler
from burler.errors import BurlerError, ConfigError, DeclarationError
from burler.testing import canary, run_tap

TOKEN = canary("token")

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "who": {"type": "string"}}}


class CoolClient:
    made = 0

    def __init__(self, base_url, access_token="none", *, page_size=10):
        type(self).made += 1
        self.base_url, self.access_token, self.page_size = base_url, access_token, page_size

    def describe(self):
        return {"contacts": SCHEMA}


class WithConfig:
    def __init__(self, config):
        self.base_url = config["base_url"]


def factory(config):
    return WithConfig(config)


def no_arguments():
    return WithConfig({"base_url": "fixed"})


def client_of(tap, config):
    """The client that a sync function of the tap gets."""
    seen = []

    @tap.sync("contacts", schema=SCHEMA)
    def contacts(client):
        seen.append(client)
        yield {"id": 1}

    run = run_tap(tap, config)
    assert not run.result.errors, run.result.errors
    assert len(seen) == 1
    return seen[0]


# ---- burler.tap(CoolClient) ----------------------------------------------------------------------


def test_a_class_takes_its_parameters_from_the_config():
    config = {"base_url": "u", "page_size": 5, "start_date": "2024-01-01T00:00:00Z"}
    client = client_of(burler.tap(CoolClient, config_spec=["base_url"]), config)
    assert isinstance(client, CoolClient)
    assert (client.base_url, client.access_token, client.page_size) == ("u", "none", 5)


@pytest.mark.parametrize("given", [WithConfig, factory, functools.partial(factory)])
def test_a_class_or_factory_that_asks_for_config_gets_it(given):
    assert client_of(burler.tap(given), {"base_url": "u"}).base_url == "u"


def test_a_factory_without_parameters():
    assert client_of(burler.tap(no_arguments), {"base_url": "u"}).base_url == "fixed"


def test_a_client_that_is_made_already():
    ready = types.SimpleNamespace(base_url="r")
    assert client_of(burler.tap(ready), {}) is ready


def test_plannings_second_argument_is_the_config_spec():
    tap = burler.tap(CoolClient, ["base_url"])
    tap.sync("contacts", schema=SCHEMA)(lambda: [])
    with pytest.raises(ConfigError, match="base_url"):
        run_tap(tap, {})


def test_the_client_is_made_once_per_run():
    tap = burler.tap(CoolClient)
    for name in ("a", "b"):
        tap.sync(name, schema=SCHEMA)(lambda client: [{"id": 1}])
    before = CoolClient.made
    run_tap(tap, {"base_url": "u"})
    assert CoolClient.made == before + 1
    run_tap(tap, {"base_url": "u"})
    assert CoolClient.made == before + 2


def test_what_the_config_lacks_is_said_with_its_variable():
    tap = burler.tap(CoolClient)
    tap.sync("contacts", schema=SCHEMA)(lambda client: [])
    with pytest.raises(ConfigError) as caught:
        run_tap(tap, {"acces_token": TOKEN})
    text = str(caught.value)
    assert "'base_url'" in text and "BASE_URL" in text and "--config" in text
    assert TOKEN not in text


@pytest.mark.parametrize("given", [None, 5, True, 1.5, b"tap", [], {}, ("a",), {"x"}])
def test_nonsense_is_no_client(given):
    with pytest.raises(DeclarationError, match=r"test_client\.py:\d+: a tap's name must be text .*or its client"):
        burler.tap(given)


@pytest.mark.parametrize(
    ("module", "file", "name"),
    [
        ("tap_contacts", "/x/tap_contacts.py", "tap-contacts"),
        ("tap_crm.main", "/x/tap_crm/main.py", "tap-crm"),
        ("tap_crm", "/x/tap_crm/__init__.py", "tap-crm"),
        ("__main__", "/x/tap_thing.py", "tap-thing"),
        ("__main__", "/x/tap_pack/__main__.py", "tap-pack"),
    ],
)
def test_the_name_then_comes_from_the_module(module, file, name):
    scope = {"__name__": module, "__file__": file, "burler": burler, "C": CoolClient}
    exec(compile("tap = burler.tap(C)", file, "exec"), scope)
    assert scope["tap"].name == name


def test_a_client_given_twice_is_refused():
    tap = burler.tap(CoolClient)
    with pytest.raises(DeclarationError, match=r"the tap has a client already \(.*\)\. Keep one of the two"):

        @tap.client
        def client(config):
            return 1


# ---- tap.client as a decorator, and as the client ------------------------------------------------


def test_tap_client_is_a_decorator_that_gives_the_function_back():
    tap = burler.tap("tap-x")

    def make(config):
        return CoolClient(config["base_url"])

    assert tap.client(make) is make
    assert client_of(tap, {"base_url": "b"}).base_url == "b"


def test_a_class_may_be_decorated():
    tap = burler.tap("tap-x")

    @tap.client
    class Mine:
        def __init__(self, config):
            self.url = config["base_url"]

    assert client_of(tap, {"base_url": "b"}).url == "b"


def test_tap_client_stands_for_the_client_wherever_the_tap_runs():
    tap = burler.tap(CoolClient)
    seen = {}

    @tap.discover
    def discover():
        seen["discover"] = tap.client.base_url
        return tap.client.describe()

    @tap.sync("contacts", key_properties="id")
    def contacts():
        seen["sync"] = tap.client.base_url
        tap.client.calls = 3
        yield {"id": tap.client.calls}

    @tap.metadata("contacts")
    def metadata():
        seen["metadata"] = tap.client.base_url

    @tap.post_transform("contacts")
    def transform(record):
        seen["post_transform"] = tap.client.base_url
        return record

    @tap.bookmark("contacts")
    def bookmark(record):
        seen["bookmark"] = tap.client.base_url
        return record["id"]

    @tap.sync("others")
    def others():
        yield {"id": 1}

    @tap.schema("others")
    def schema():
        seen["schema"] = tap.client.base_url
        return SCHEMA

    run = run_tap(tap, {"base_url": "u"})
    assert not run.result.errors
    assert seen == dict.fromkeys(["discover", "sync", "metadata", "post_transform", "bookmark", "schema"], "u")
    assert run.records("contacts") == [{"id": 3}]


def test_in_class_style_and_in_substreams():
    tap = burler.tap(CoolClient)

    @tap.stream
    class Contacts(burler.Stream):
        def schema(self):
            return tap.client.describe()["contacts"]

        def sync(self):
            yield {"id": 1, "who": tap.client.base_url}

    @tap.sync("notes", parent=Contacts, schema=SCHEMA)
    def notes(parent):
        yield {"id": 2, "who": tap.client.base_url + parent["who"]}

    run = run_tap(tap, {"base_url": "u"})
    assert run.records("contacts") == [{"id": 1, "who": "u"}]
    assert run.records("notes") == [{"id": 2, "who": "uu"}]


def test_in_threads_that_take_the_context_along():
    tap = burler.tap(CoolClient)

    @tap.sync("contacts", schema=SCHEMA, key_properties="id")
    def contacts(stream):
        def fetch(i):
            return {"id": i, "who": tap.client.base_url}

        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(contextvars.copy_context().run, fetch, i) for i in range(5)]
            yield [job.result() for job in jobs]

    assert run_tap(tap, {"base_url": "u"}).records("contacts") == [{"id": i, "who": "u"} for i in range(5)]


@pytest.mark.skipif(bool(getattr(sys.flags, "thread_inherit_context", 0)), reason="threads inherit the context here")
def test_in_bare_threads_the_error_says_what_to_do():
    tap = burler.tap(CoolClient)
    said = []

    @tap.sync("contacts", schema=SCHEMA)
    def contacts():
        with ThreadPoolExecutor(1) as pool:
            said.append(str(pool.submit(lambda: tap.client.base_url).exception()))
        yield {"id": 1}

    run_tap(tap, {"base_url": "u"})
    assert "tap.client.base_url" in said[0] and "in your own threads take 'stream' as a parameter" in said[0]


@pytest.mark.parametrize("what", ["read", "write"])
def test_outside_of_a_run(what):
    tap = burler.tap(CoolClient)
    with pytest.raises(BurlerError, match=r"^tap\.client\.base_url was called outside a running stream\."):
        if what == "read":
            tap.client.base_url.upper()
        else:
            tap.client.base_url = "x"


def test_python_may_look_at_it_all_the_same():
    tap = burler.tap(CoolClient)
    assert "client of" in repr(tap.client)
    assert not hasattr(tap.client, "__wrapped__")
    copy.copy(tap.client)


def test_a_tap_without_a_client():
    tap = burler.tap("tap-x")
    said = []

    @tap.sync("contacts", schema=SCHEMA)
    def contacts():
        try:
            tap.client.describe()
        except BurlerError as error:
            said.append(str(error))
        yield {"id": 1}

    run_tap(tap)
    assert "tap-x" in said[0] and "@tap.client" in said[0]


def test_a_client_that_has_no_such_attribute_fails_its_stream():
    tap = burler.tap(CoolClient)

    @tap.sync("contacts", schema=SCHEMA)
    def contacts():
        yield tap.client.nothing()

    run = run_tap(tap, {"base_url": "u"})
    assert "'CoolClient' object has no attribute 'nothing'" in str(run.result.errors["contacts"])


def test_a_client_that_can_not_be_made_is_one_error_without_the_secret():
    tap = burler.tap("tap-x", config_spec=["access_token"])

    @tap.client
    def client(config):
        raise ConnectionError("no such host")

    tap.sync("a", schema=SCHEMA)(lambda client: [])
    tap.sync("b", schema=SCHEMA)(lambda client: [])
    with pytest.raises(BurlerError) as caught:
        run_tap(tap, {"access_token": TOKEN})
    assert "the client function" in str(caught.value) and "no such host" in str(caught.value)
    assert "test_client.py:" in str(caught.value) and TOKEN not in str(caught.value)


def test_methods_that_burlers_handle_does_not_have_belong_to_the_client():
    """The handle must not hide names of the client: 'get' and the like are its own."""
    tap = burler.tap(types.SimpleNamespace(get=lambda: 1, name="n", sync=lambda: 2, _private=7))
    seen = []

    @tap.sync("contacts", schema=SCHEMA)
    def contacts():
        seen.append((tap.client.get(), tap.client.name, tap.client.sync(), tap.client._private))
        yield {"id": 1}

    run = run_tap(tap)
    assert seen == [(1, "n", 2, 7)], run.result.errors
