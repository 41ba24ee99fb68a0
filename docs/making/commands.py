"""A page for each command of `burler`, and for the script of a tap, from what click knows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

import burler
from burler.cli import process, singer_flags
from burler.cli.flags import SETTINGS, TAIL
from burler.cli.helping import OPTIONS, Command, first_sentence
from burler.cli.main import cli
from burler.cli.options import CommandWithSettings
from burler.settings import Settings, default_text

_DOCS = Path(__file__).parents[1]

GUIDES = {
    "about": "config.md",
    "batch": "batch.md",
    "completion": "terminal.md",
    "discover": "selecting.md",
    "export": "tables.md",
    "extract": "extract.md",
    "infer": "schemas.md",
    "lake check": "lake-care.md",
    "lake compact": "lake-care.md",
    "lake describe": "lake-care.md",
    "lake docs": "lake-site.md",
    "lake ls": "lake-care.md",
    "lake read": "lake-reading.md",
    "lake rebuild": "lake-care.md",
    "lake vacuum": "lake-care.md",
    "lake write": "lake.md",
    "new": "new.md",
    "run": "running.md",
    "spark": "spark.md",
    "state": "lake-state.md",
    "spark init-pipeline": "spark-streaming.md",
    "verify": "verify.md",
}
"""Command, or group -> the page that says how it is used."""
TAP = "tap-crm"
"""The tap whose own script has a page."""


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    found = {_file(words): _page(words, command) for words, command in commands()}
    return {**found, f"{TAP}.md": _page([TAP], script(), tap=True), "index.md": _index()}


def commands(
    group: click.Group = cli, words: tuple[str, ...] = ("burler",)
) -> Iterator[tuple[list[str], click.Command]]:
    """Every command below a group, with its words: ``["burler", "lake", "read"]``; groups themselves are left out."""
    for name in sorted(group.commands):
        command = group.commands[name]
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield [*words, name], command


def script() -> click.Command:
    """The command of a tap's own script."""
    return singer_flags._command(burler.tap(TAP, description="The script of a tap."))


def _file(words: list[str]) -> str:
    return "-".join(words[1:]) + ".md"


def _page(words: list[str], command: click.Command, tap: bool = False) -> str:
    """Title, usage, what it does with its examples, arguments and options, exit codes."""
    context = click.Context(command, info_name=" ".join(words), **command.context_settings)
    guide = _guide(words, tap)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"# {' '.join(words)}", f"```text\n{' '.join(words)} {usage}\n```"]
    parts += [_OF_TAPS] if tap else _text(command.help or "")
    assert isinstance(command, Command)
    sections = command.sections(context)
    parts += ["## Options"]
    for title, options in sections.items():
        if title == TAIL:
            parts += ["## Options that are settings, too", _SETTINGS_TOO]
        elif title != OPTIONS:
            parts += [f"### {title}"]
        parts += [_options(options, context)]
    if isinstance(command, CommandWithSettings):
        rows = [
            f"| `{item.name}` | {_cell(item.metadata['about'])} | {_cell(_code(default_text(item)))} |"
            for item in fields(Settings)
            if item not in SETTINGS
        ]
        table = "\n".join(["| setting | does | default |", "|---|---|---|", *rows])
        parts += ["## Settings", "They stand in the config.", table]
    parts += ["## Exit codes", _EXIT, "## More", f"[{_title(guide)}](../../{guide})"]
    return "\n\n".join(parts) + "\n"


_OF_TAPS = (
    "Each tap has a script of its own: `tap.cli()` in its `__main__` or as an entry point, as `burler "
    "new` writes it. It takes "
    "the flags that every Singer orchestrator knows, and those of [`burler run`](run.md)."
)
_SETTINGS_TOO = "In the config they are spelt with `_` in place of `-`; an option of the command line comes before it."
_EXIT = "As everywhere: [exit codes](index.md#exit-codes)."


def _guide(words: list[str], tap: bool) -> str:
    """The page that says how a command is used.

    Raises:
        KeyError: GUIDES has none.
    """
    name = " ".join(words[1:])
    return GUIDES["run"] if tap else GUIDES.get(name) or GUIDES[words[1]]


def _title(guide: str) -> str:
    first = (_DOCS / guide).read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ").strip()


def _text(text: str) -> list[str]:
    """The help as Markdown: its paragraphs; those that click is told not to wrap (``\\b``) are examples."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.splitlines()]
        if lines[0] == "\b":
            parts.append("```text\n" + "\n".join(lines[1:]) + "\n```")
        else:
            parts.append(_prose(" ".join(lines)))
    return parts


def _prose(text: str) -> str:
    """Text of a help as Markdown: its words are no markup."""
    text = re.sub(r"([*_<>\[\]|])", r"\\\1", text)
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]*(?:=[a-z]+)?)", r"`\1`", text)


def _options(options: list[click.Option], context: click.Context) -> str:
    rows = []
    for option in options:
        names, about = option.get_help_record(context) or (option.opts[0], "")
        about, default = _default(about)
        rows.append(f"| `{_in_code(names)}` | {_cell(_prose(about))} | {_cell(_code(default))} |")
    return "\n".join(["| option | does | default |", "|---|---|---|", *rows])


def _default(about: str) -> tuple[str, str]:
    """A help's text without what click puts behind it, and the default."""
    found = re.search(r"\s*\[([^\[\]]*)\]\s*$", about)
    if not found:
        return about, ""
    default = re.search(r"default: ([^;]*(?:; [a-z]+: [^;]*)*)", found[1])
    rest = "; ".join(part for part in found[1].split("; ") if not part.startswith("default: "))
    before = about[: found.start()]
    return f"{before} ({rest})" if default and rest else before if default else about, default[1] if default else ""


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _in_code(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def _index() -> str:
    """The page that lists all commands, with the exit codes."""
    parts = [
        "# Commands",
        "All that `burler` does from a shell; a tap's own script is [the last one](tap-crm.md). "
        "`burler COMMAND --help` has the same.",
        _toctree([*(_file(words) for words, _ in commands()), f"{TAP}.md"]),
        "| command | does |\n|---|---|\n"
        + "\n".join(
            f"| [`{' '.join(words)}`]({_file(words)}) | {_cell(_prose(first_sentence(command)))} |"
            for words, command in commands()
        ),
        "## Exit codes",
        "| code | means |\n|---|---|\n" + "\n".join(f"| {code} | {_cell(text)} |" for code, text in _exit_codes()),
        "`burler verify` has 1 for a finding of severity error, with `--strict` for a warning, too. "
        "[Errors](../errors.md) says which error ends with which.",
    ]
    return "\n\n".join(parts) + "\n"


def _exit_codes() -> list[tuple[str, str]]:
    """Each code with what it means, from the one sentence that all helps end with."""
    said = process.EXIT_CODES.removeprefix("Exit codes: ").rstrip(".")
    return [(code, text) for code, text in (part.strip().split(" ", 1) for part in said.split("; "))]


def _toctree(files: list[str]) -> str:
    return "```{toctree}\n:hidden:\n\n" + "\n".join(name.removesuffix(".md") for name in files) + "\n```"
