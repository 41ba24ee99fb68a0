"""What users of c550d9f typed and imported is there, and takes and gives what it did. What is new is fine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from contract import interface
from contract.files import CONTRACT, read_json, read_lines

ALLOWED = {
    # Decided: these leave.
    "burler-export --engine: session": "engine='session' of table formats was never run once",
    "burler-lake-write --compression: bz2": "bz2 is read in lakes, and no longer written",
    "burler.lake.LakeWriter(pace)": "a writer has one clock: clock=",
    "burler.lake.LakeDriver(pace)": "a writer has one clock: clock=",
    "burler.Tap.functions": "it was for the engine, which reads an App: tap.seal()",
    "burler.testing.FakeClock.is_fake": "what runs no longer asks whose clock it has",
    "burler.config.parse_spec(folder): FilePath | None": "it is pathlib's Path, by its own name",
    # Mended since.
    "burler.verify.Options: positions": "'allow' came before 'progress': nobody gives ten options by place",
    "burler.lake.ingest(writer): LakeWriter": "whatever takes pages and STATEs, as a LakeWriter does",
    "exit of a new tap in a folder that is not there: 2": "burler new makes the folder that --into names",
}
"""What may differ from c550d9f, and why: an entry is what is gone, without what came in its place."""


def differs(differences: Iterator[str]) -> list[str]:
    return [difference for difference in differences if difference.partition(" -> ")[0] not in ALLOWED]


# ---- the command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def helps():
    return interface.helps()


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONTRACT / "interface" / "help").iterdir()))
def test_help_has_what_it_had(helps, name):
    assert name in helps, "the command is gone"
    then = interface.Help((CONTRACT / "interface" / "help" / f"{name}.txt").read_text())
    assert differs(of_help(name, interface.Help(helps[name]), then)) == []


def of_help(name: str, now: interface.Help, then: interface.Help) -> Iterator[str]:
    if now.usage != then.usage:
        yield f"{name} {then.usage} -> {now.usage}"
    yield from (f"{name} {command}" for command in then.commands if command not in now.commands)
    for option, (words, default) in then.options.items():
        if option not in now.options:
            yield f"{name} {option}"
            continue
        words_now, default_now = now.options[option]
        yield from (f"{name} {option}: {word} -> {sorted(words_now)}" for word in sorted(words - words_now))
        if not words and words_now:
            yield f"{name} {option}: no value -> {sorted(words_now)}"
        if default != default_now and default is not None:
            yield f"{name} {option}: default {default} -> {default_now}"


def test_help_is_read():
    """The reading itself: names, words, defaults."""
    run = interface.Help((CONTRACT / "interface" / "help" / "burler-run.txt").read_text())
    assert run.usage == ["APP"]
    assert run.options["-c"] == run.options["--config"] == ({"FILE"}, None)
    assert run.options["--no-tail"] == (set(), None) or run.options["--no-tail"] == (set(), "false")
    assert run.options["--tail-max-retries"] == ({"COUNT", "forever"}, "10")
    assert len(run.options) > 40
    export = interface.Help((CONTRACT / "interface" / "help" / "burler-export.txt").read_text())
    assert export.options["--mode"] == ({"append", "upsert"}, None)
    assert export.options["--format"] == ({"NAME"}, "delta")
    top = interface.Help((CONTRACT / "interface" / "help" / "burler.txt").read_text())
    assert {"run", "lake", "batch", "export", "verify"} <= set(top.commands)


@pytest.fixture(scope="module")
def asked():
    return interface.asked()


def within(now: Any, then: Any, place: str) -> Iterator[str]:
    """What is gone of a JSON text, or another one."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            where = f"{place}/{key}"
            yield from within(now[key], value, where) if key in now else (f"{where}",)
    elif isinstance(then, list) and isinstance(now, list) and not any(isinstance(one, dict) for one in then):
        yield from (f"{place}: {one}" for one in then if one not in now)
    elif isinstance(then, list) and isinstance(now, list):
        yield from (f"{place}: {one}" for one in then if not any(fits(other, one) for other in now))
    elif now != then:
        yield f"{place}: {then} -> {now}"


def fits(now: Any, then: Any) -> bool:
    return not list(within(now, then, ""))


def test_settings(asked):
    now, then = asked["settings"], read_json(CONTRACT / "interface" / "settings.json")
    found = [
        difference for name in then for difference in differs(within(now.get(name), then[name], f"setting {name}"))
    ]
    assert found == []


@pytest.mark.parametrize("what", ["about", "discovered"])
def test_what_a_tap_says_of_itself(asked, what):
    then = interface.less_prose(read_json(CONTRACT / "interface" / f"{what}.json"))
    then.pop("settings", None)  # a test of its own
    then.pop("sdk_version", None)
    assert differs(within(interface.less_prose(asked[what]), then, what)) == []


def test_exit_codes(asked):
    now, then = asked["exits"], read_json(CONTRACT / "interface" / "exits.json")
    assert set(now) == set(then)
    assert differs(f"exit of {name}: {code} -> {now[name]}" for name, code in then.items() if now[name] != code) == []


def test_error_classes(asked):
    now, then = asked["errors"], read_json(CONTRACT / "interface" / "errors.json")
    assert (
        differs(difference for name in then for difference in within(now.get(name), then[name], f"error {name}")) == []
    )


# ---- public names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("package", interface.PACKAGES)
def test_public_names(asked, package):
    now = of_package(asked["names"], package)
    then = of_package(dict(read_lines(CONTRACT / "interface" / "names.jsonl")), package)
    assert then
    assert differs(difference for name, what in then.items() for difference in of_name(name, now.get(name), what)) == []


def of_package(names: dict[str, Any], package: str) -> dict[str, Any]:
    return {name: what for name, what in names.items() if name.rpartition(".")[0] == package}


def of_name(name: str, now: Any, then: dict[str, Any]) -> Iterator[str]:
    """What has changed of a name that users import."""
    if now is None:
        yield name
        return
    if now["kind"] != then["kind"] and {now["kind"], then["kind"]} != {"class", "function"}:
        yield f"{name}: {then['kind']} -> {now['kind']}"
    for key in ("made", "takes"):
        if then.get(key) is not None:
            yield from of_parameters(name, now.get(key, now.get("made", now.get("takes"))), then[key])
    yield from (f"{name} is a {base}" for base in then.get("bases", ()) if base not in now["bases"])
    for member, what in then.get("members", {}).items():
        yield from of_name(f"{name}.{member}", now.get("members", {}).get(member), what)


def of_parameters(name: str, now: Any, then: dict[str, list[str]]) -> Iterator[str]:
    """What has changed of parameters: they may become optional, more may come, if nobody has to give them."""
    if now is None:
        yield f"{name}(...) -> nothing is known"
        return
    positional = [key for key, (kind, _type, _default) in then.items() if kind.startswith("POSITIONAL")]
    if (
        positional
        != [key for key, (kind, _type, _default) in now.items() if kind.startswith("POSITIONAL")][: len(positional)]
    ):
        yield f"{name}: positions -> {list(now)}, before {positional}"
    for key, (kind, type_, default) in then.items():
        if key not in now:
            yield f"{name}({key})"
            continue
        kind_now, type_now, default_now = now[key]
        if kind != kind_now and not (kind == "KEYWORD_ONLY" and kind_now == "POSITIONAL_OR_KEYWORD"):
            yield f"{name}({key}): {kind} -> {kind_now}"
        if not type_fits(type_now, type_):
            yield f"{name}({key}): {type_} -> {type_now}"
        if default != default_now and default:
            yield f"{name}({key}): default {default} -> {default_now}"
    yield from (
        f"{name}({key}) is new and must be given -> {what}"
        for key, what in now.items()
        if key not in then and not what[2] and not what[0].startswith("VAR")
    )


def type_fits(now: str, then: str) -> bool:
    """The same type, or one that takes more (``int`` -> ``int | str``). ``?`` is a class that users can't import."""
    if same_type(now, then):
        return True
    return all(any(same_type(new, old) for new in alternatives(now)) for old in alternatives(then))


def same_type(now: str, then: str) -> bool:
    return re.fullmatch(re.escape(then).replace(r"\?", r"[\w.?]+"), now) is not None


def alternatives(text: str) -> list[str]:
    """What stands between ``|``; each word of a ``Literal`` is one."""
    text = re.sub(r"Literal\[([^\[\]]*)\]", lambda words: words[1].replace(", ", " | "), text)
    return re.split(r" \| (?![^\[]*\])", text)


def test_each_way_to_change_a_signature_is_seen():
    then = {"a": ["POSITIONAL_OR_KEYWORD", "int", ""], "b": ["KEYWORD_ONLY", "? | None", "None"]}
    fine = {
        "a": ["POSITIONAL_OR_KEYWORD", "int | str", "1"],
        "b": ["KEYWORD_ONLY", "Stop | None", "None"],
        "c": ["KEYWORD_ONLY", "int", "3"],
    }
    assert list(of_parameters("f", fine, then)) == []
    assert type_fits("Literal['a', 'b', 'c'] | None", "Literal['a', 'c'] | None")
    assert not type_fits("Literal['a', 'b'] | None", "Literal['a', 'c'] | None")
    for broken in (
        {"b": then["b"]},
        {**then, "a": ["KEYWORD_ONLY", "int", ""]},
        {**then, "a": ["POSITIONAL_OR_KEYWORD", "str", ""]},
        {**then, "b": ["KEYWORD_ONLY", "? | None", "1"]},
        {**then, "b": ["KEYWORD_ONLY", "?", "None"]},
        {**then, "c": ["KEYWORD_ONLY", "int", ""]},
        {"c": ["POSITIONAL_OR_KEYWORD", "int", "1"], **then},
    ):
        assert list(of_parameters("f", broken, then)) != [], broken
