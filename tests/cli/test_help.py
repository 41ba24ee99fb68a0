"""Every command's help: what it opens with, examples that are right, options that say what they do."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.append(str(DOCS))
from making import commands as made  # noqa: E402


def walk(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(words), command
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from walk(one, *words, name)


SCRIPT, CLI = made.script(), made.cli
ALL = {**dict(walk(CLI, "burler")), "tap-crm": SCRIPT}
every = pytest.mark.parametrize("name", ALL)


def options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option)]


def context(name: str) -> click.Context:
    command = ALL[name]
    return click.Context(command, info_name=name, **command.context_settings)


def examples(command: click.Command) -> list[str]:
    paragraphs = re.split(r"\n\s*\n", command.help or "")
    found = [one.strip() for one in paragraphs if one.strip().startswith("\b")]
    return [line.strip() for one in found for line in one.splitlines()[1:]]


def calls(line: str) -> Iterator[list[str]]:
    """The calls of burler's own commands in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    call: list[str] = []
    into = False
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;()"):
            if call and call[0] in ("burler", "tap-crm"):
                yield call
            call, into = [], False
        elif set(word) <= set("<>"):
            into = True
            if call and call[-1] == "2":
                call.pop()
        elif into:
            into = False
        else:
            call.append(word)


def parse(call: list[str]) -> click.Context:
    """As the command line does, up to where the command would begin.

    Raises:
        click.UsageError: it is wrong.
    """
    if call[0] == "tap-crm":
        return SCRIPT.make_context(call[0], call[1:])
    command: click.Command = CLI
    found = click.Context(CLI, info_name="burler")
    words = call[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, one, words = command.resolve_command(found, words)
        assert one is not None
        command, found = one, click.Context(one, found, name)
    if isinstance(command, click.Group) or {"--help", "-h", "--version"} & set(words):
        return found
    return command.make_context(found.info_name, words, found.parent)


@every
def test_it_opens_with_a_sentence(name: str):
    text = " ".join((ALL[name].help or "").split()).partition(". ")[0].rstrip(".") + "."
    assert re.fullmatch(r"[A-Z].{10,130}\.", text), text


@every
def test_it_has_examples_that_are_right(name: str):
    shown = examples(ALL[name])
    assert any(line.startswith(name) or f"| {name}" in line for line in shown), shown
    for line in shown:
        for call in calls(line):
            if call != ["burler", "COMMAND", "--help"]:
                parse(call)


def test_a_wrong_example_is_told():
    for line in ("burler exprot a b", "x | burler lake write l --nosuch 1 > y", "burler run", "burler new x --kind y"):
        with pytest.raises(click.UsageError):
            [parse(call) for call in calls(line)]


@every
def test_every_option_says_what_it_does(name: str):
    for one in options(ALL[name]):
        if one.name != "version":
            assert one.help and len(one.help) > 5, one.opts


@every
def test_defaults_are_shown(name: str):
    found = context(name)
    for one in options(ALL[name]):
        default = one.get_default(found, call=False)
        quiet = one.is_flag and not one.secondary_opts
        if default not in (None, False, (), "") and not quiet and "UNSET" not in repr(default).upper():
            assert "default" in one.get_help_extra(found), one.opts


@every
def test_help_is_no_wider_than_it_was_written(name: str):
    text = ALL[name].get_help(context(name))
    kept = {line.strip() for line in examples(ALL[name])}
    assert [line for line in text.splitlines() if len(line) > 100 and line.strip() not in kept] == []


@pytest.mark.parametrize("name", ["lake ls", "lake check", "lake vacuum", "lake docs", "verify", "run", "extract"])
def test_exit_codes_stand_where_they_differ(name: str):
    assert "Exit codes: 0 " in ALL[f"burler {name}"].get_help(context(f"burler {name}"))


def test_defaults_that_are_said_in_words_are_those_of_the_code():
    from burler.lake import LockSettings, RollSettings

    write = {str(one.name): one.show_default for one in options(ALL["burler lake write"])}
    roll, lock = RollSettings(), LockSettings()
    assert (roll.max_file_bytes, write["max_file_bytes"]) == (64 << 20, "64MiB")
    assert (roll.max_open_bytes, write["max_open_bytes"]) == (1 << 30, "1GiB")
    assert (roll.max_file_age_seconds, roll.max_open_files, roll.max_file_records) == (60, 100, None)
    assert (write["max_file_age_seconds"], write["max_open_files"]) == ("60", "100")
    assert (lock.ttl_seconds, lock.timeout_seconds) == (300, 600)
    assert (write["lock_ttl_seconds"], write["lock_timeout_seconds"]) == ("300", "600")


# ---- the docs --------------------------------------------------------------------------------------


GROUPS = {name for name, one in ALL.items() if isinstance(one, click.Group)}


def typed_lines(text: str) -> Iterator[str]:
    """The lines of blocks in which commands are typed, but those that are answered with an error."""
    language = None
    lines = text.replace("\\\n", " ").splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if fence := re.match(r"```(\w*)", line):
            language = fence[1] if language is None else None
        elif language in ("console", "sh", "bash") or (language is None and line.startswith("    ")):
            typed = language != "console" or line.startswith("$ ")
            if typed and " CRITICAL " not in after:
                yield line.partition("  #")[0]


def shown_calls(text: str) -> Iterator[str]:
    """What a page shows of commands: in blocks, and between backticks."""
    typed = [part for line in typed_lines(text) for part in re.split(r"\||&&|;|\$\(", line)]
    typed = [part.strip().removeprefix("$ ") for part in typed]
    for one in [*typed, *re.findall(r"`(burler [^`\n]+)`", text)]:
        if found := re.match(r"(?:[A-Z_]+=\S* )*(?:\S*/)?burler ([a-z][a-z-]*(?: .*)?)$", one):
            yield found[1]


def test_commands_and_options_on_a_page_are_there(docs_pages: dict[str, str]):
    calls = {(call, page) for page, text in docs_pages.items() for call in shown_calls(text)}
    assert len(calls) > 200
    assert [f"{page}: {call}: {wrong}" for call, page in sorted(calls) for wrong in unknown_in(call)] == []


def unknown_in(call: str) -> Iterator[str]:
    """What of a call there is no command or option for."""
    name = "burler"
    words = call.split()
    while words and name in GROUPS and f"{name} {words[0]}" in ALL:
        name = f"{name} {words.pop(0)}"
    if name == "burler" or (name in GROUPS and words and not words[0].startswith(("-", "..", "#", "("))):
        yield "no such command"
    known = {opt for one in ALL[name].get_params(context(name)) for opt in (*one.opts, *one.secondary_opts)}
    for option in re.findall(r"(?<![\w'\"-])--[a-z][a-z-]*", _without_quotes(call)):
        if option not in known and name not in GROUPS:
            yield option


def _without_quotes(text: str) -> str:
    """What stands in quotes belongs to another program."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)
