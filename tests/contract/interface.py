"""What users type and import: commands with their options, settings, exit codes, public names with signatures."""

from __future__ import annotations

import builtins
import collections.abc
import importlib
import inspect
import json
import re
import tempfile
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract import apps
from contract.files import HERE, several

PACKAGES = (
    "burler",
    "burler.batch",
    "burler.config",
    "burler.errors",
    "burler.files",
    "burler.graphql",
    "burler.http",
    "burler.lake",
    "burler.lake.care",
    "burler.patterns",
    "burler.schema",
    "burler.singer",
    "burler.singer.catalog",
    "burler.singer.messages",
    "burler.soap",
    "burler.spark",
    "burler.spec",
    "burler.sql",
    "burler.testing",
    "burler.verify",
)
"""The packages that users import from."""

# ---- the command line -----------------------------------------------------------------------------


def helps() -> dict[str, str]:
    """The ``--help`` of each command, and of a tap's own one: words with ``-`` between them -> text."""
    found: dict[str, str] = {}
    wanted: list[tuple[str, ...]] = [("burler",), ("tap-shop",)]
    while wanted:
        ended = several([(*(words[1:] if words[0] == "burler" else words), "--help") for words in wanted])
        deeper = []
        for words, done in zip(wanted, ended, strict=True):
            assert done.code == 0, done
            found["-".join(words)] = done.out
            deeper += [(*words, command) for command in Help(done.out).commands]
        wanted = deeper
    return found


class Help:
    """What a ``--help`` says, but for its prose.

    ``usage``: the arguments. ``commands``: names. ``options``: name -> its value's words and its default, None where it
    has none, or where it is said in prose.
    """

    def __init__(self, text: str) -> None:
        usage = " ".join(text.partition("\n\n")[0].split())
        self.usage = usage.partition("[OPTIONS]")[2].split()
        self.commands: list[str] = []
        self.options: dict[str, tuple[set[str], str | None]] = {}
        heading, names = "", list[str]()
        prose: dict[str, str] = {}
        for line in text.splitlines():
            if line[:1].strip():
                heading, names = line, []
            elif heading == "Commands:" and (found := re.match(r"  ([a-z][\w-]*)(  |$)", line)):
                self.commands.append(found[1])
            elif found := re.match(r"  (-\S.*?)(  +\S.*|$)", line):
                names = self._option(found[1])
                prose.update(dict.fromkeys(names, found[2]))
            else:
                for name in names:
                    prose[name] += " " + line.strip()
        for name, said in prose.items():
            default = re.search(r"\[default: ([\w.:/*-]+)[;\]]", said)
            self.options[name] = (self.options[name][0], default and default[1])

    def _option(self, text: str) -> list[str]:
        names = re.findall(r"(?:^|[ ,/])(--?[a-z][\w-]*)", text)
        value = re.sub(r"--?[a-z][\w-]*|,|/(?= )", " ", text).strip().strip("[]")
        for name in names:
            self.options[name] = (set(value.split("|")) if value else set(), None)
        return names


def asked() -> dict[str, Any]:
    """All but the help."""
    about, discovered = several(
        [("about", f"{HERE / 'apps.py'}:first", "--format", "json"), ("discover", f"{HERE / 'apps.py'}:first")]
    )
    told = json.loads(about.out)
    return {
        "about": told,
        "discovered": json.loads(discovered.out),
        "settings": {name: less_prose(schema) for name, schema in told["settings"]["properties"].items()},
        "exits": exits(),
        "errors": errors(),
        "names": dict(public_names()),
    }


def less_prose(node: Any) -> Any:
    """A JSON text without its descriptions."""
    if isinstance(node, dict):
        return {key: less_prose(value) for key, value in node.items() if key != "description"}
    return [less_prose(item) for item in node] if isinstance(node, list) else node


def exits() -> dict[str, int]:
    """What is done, and the exit code that it has."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        app = f"{HERE / 'apps.py'}:counting"
        texts = {
            "good.json": '{"upto": 2}',
            "bad.json": '{"upto": "two"}',
            "torn.json": '{"upto": ',
            "state.json": '{"bookmarks": 3}',
            "catalog.json": '{"streams": [{"tap_stream_id": "none", "metadata": [{"breadcrumb": [], "metadata": '
            '{"selected": true}}]}]}',
            "broken.py": "import burler\ntap = burler.tap('t')\n@tap.sync('a', key_properties='id')\n"
            "def a():\n    yield {'id': 1}\n    raise OSError\ntap.schema('a', {'properties': {'id': {}}})\n",
            "wrong.py": "import burler\ntap = burler.tap('t')\ntap.stream('a', no_such_option=1)\n",
            "no.py": "import no_such_module\n",
            "good.jsonl": apps.foreign(1),
        }
        for file, text in texts.items():
            (folder / file).write_text(text)
        (folder / "lake" / "raw" / "t" / "s").mkdir(parents=True)
        (folder / "lake" / "raw" / "t" / "s" / "manifest.json").write_text("{")
        config = ("--config", folder / "good.json")
        cases: dict[str, tuple[Any, ...]] = {
            "a run": ("run", app, *config),
            "a run of nothing that is there": ("run", folder / "none.py"),
            "a run of a module that can't be imported": ("run", folder / "no.py"),
            "a run of a declaration that is wrong": ("run", folder / "wrong.py"),
            "a run with a config that is wrong": ("run", app, "--config", folder / "bad.json"),
            "a run with a config that is no JSON": ("run", app, "--config", folder / "torn.json"),
            "a run with a state that is wrong": ("run", app, *config, "--state", folder / "state.json"),
            "a run with a stream that is not there": ("run", app, *config, "--catalog", folder / "catalog.json"),
            "a run with an option that is not there": ("run", app, "--no-such-option"),
            "a run with an unknown sink": ("run", app, *config, "--sink", "none:x"),
            "a run whose stream fails": ("run", folder / "broken.py"),
            "a run with a look at rows": ("run", app, *config, "--limit", 1),
            "discovery": ("discover", app),
            "no command": ("no-such-command",),
            "the version": ("--version",),
            "a lake that is not there": ("lake", "ls", folder / "none"),
            "a check of a broken lake": ("lake", "check", folder / "lake"),
            "an export of no lake": ("export", folder / "none", folder / "out"),
            "a schema of records": ("infer", folder / "good.jsonl"),
            "messages that break off, verified": ("verify", "-"),
            "messages that break off, into a lake": ("lake", "write", folder / "new-lake", "--tap-id", "t"),
            "messages that break off, expanded": ("batch", "expand"),
            "a site of no lake": ("lake", "docs", folder / "none", folder / "site"),
            "cleaning without an age": ("batch", "clean", folder),
            "a new tap": ("new", "tap-new", "--into", folder / "lake"),
            "a new tap in a folder that is not there": ("new", "tap-new", "--into", folder / "new"),
        }
        ended = several(list(cases.values()), stdin='{"type": "SCHEMA"\n')
        return {name: done.code for name, done in zip(cases, ended, strict=True)}


# ---- public names ---------------------------------------------------------------------------------


def errors() -> dict[str, Any]:
    """Each error class: its exit code, and the classes that catch it."""
    module = importlib.import_module("burler.errors")
    return {
        name: {"exit_code": value.exit_code, "is": [base.__name__ for base in value.__mro__[:-1]]}
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, module.BurlerError)
    }


def names_of(package: str) -> list[str]:
    """The public names of a package."""
    module = importlib.import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == package}
    return sorted(name for name in own if name[0] != "_")


def public_names() -> Iterator[tuple[str, Any]]:
    """Each public name, and what it is."""
    modules = {package: importlib.import_module(package) for package in PACKAGES}
    public = {name for package in PACKAGES for name in names_of(package)}
    for package, module in modules.items():
        for name in names_of(package):
            yield f"{package}.{name}", described(getattr(module, name), public)


def described(value: Any, public: set[str]) -> Any:
    """A class with its public members, a function with its parameters, else the type of a value."""
    if inspect.isclass(value):
        members = {name: member(value, name, public) for name in sorted(dir(value)) if is_own(value, name)}
        made = {} if issubclass(value, BaseException) else {"made": parameters(value, public)}
        bases = [base.__name__ for base in value.__mro__[1:] if base.__name__ in public]
        return {"kind": "class", "bases": bases, **made, "members": members}
    if callable(value):
        return {"kind": "function", "takes": parameters(value, public)}
    return {"kind": "value", "type": type(value).__name__}


def is_own(cls: type, name: str) -> bool:
    """Whether a member is public, and neither Python's own nor another library's."""
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    return name[0] != "_" and owner is not None and owner.__module__.partition(".")[0] == "burler"


def member(cls: type, name: str, public: set[str]) -> Any:
    """A member of a class."""
    value = inspect.getattr_static(cls, name)
    if isinstance(value, (staticmethod, classmethod)):
        return {"kind": type(value).__name__, "takes": parameters(getattr(cls, name), public)}
    if isinstance(value, types.FunctionType):
        return {"kind": "method", "takes": parameters(value, public)}
    return {"kind": "attribute"}  # a field or a property: for users there is no difference


def parameters(function: Callable[..., Any], public: set[str]) -> Any:
    """The parameters: name -> kind, type and default. A TypedDict behind ``**`` stands there with its keys."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    scope = vars(inspect.getmodule(inspect.unwrap(function)) or builtins)
    found: dict[str, list[str]] = {}
    for name, parameter in signature.parameters.items():
        keys = unpacked(parameter.annotation, scope)
        if keys is not None:
            found.update({key: ["KEYWORD_ONLY", text(value, scope, public), "..."] for key, value in keys.items()})
            continue
        kind = parameter.kind.name
        default = "" if parameter.default is parameter.empty else shown(parameter.default)
        found[name] = [kind, text(parameter.annotation, scope, public), default]
    return found


def shown(default: Any) -> str:
    """A default. Of what is no plain value only that there is one."""
    if isinstance(default, frozenset):
        return f"frozenset({sorted(default)})"  # their order is another one each time
    plain = (str, int, float, bool, bytes, type(None), tuple)
    return repr(default) if isinstance(default, plain) and "<" not in repr(default) else "..."


def unpacked(annotation: Any, scope: dict[str, Any]) -> dict[str, Any] | None:
    """The keys of ``Unpack[...]``."""
    word = re.fullmatch(r"(?:\w+\.)?Unpack\[(\w+)\]", annotation) if isinstance(annotation, str) else None
    keys = scope.get(word[1]) if word else None
    return None if keys is None else dict(getattr(keys, "__annotations__", {}))


def text(annotation: Any, scope: dict[str, Any], public: set[str]) -> str:
    """A type as it is written; classes of burler's that no user can import are ``?``, whatever they are called."""
    if annotation is inspect.Parameter.empty:
        return ""
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    if written is None:
        written = annotation.__name__ if inspect.isclass(annotation) else str(annotation)

    def word(found: re.Match[str]) -> str:
        name = found[0].rpartition(".")[2]
        known = hasattr(builtins, name) or hasattr(typing, name) or hasattr(collections.abc, name) or name in public
        value = scope.get(name)
        if typing.get_origin(value) is typing.Literal:
            return f"Literal[{', '.join(map(repr, typing.get_args(value)))}]"
        outside = inspect.isclass(value) and value.__module__.partition(".")[0] != "burler"
        return name if known or outside else "?"

    pieces = re.split(r"('[^']*'|\"[^\"]*\")", written)  # texts of Literal stay
    if not all(piece[:1] in "'\"" and piece for piece in pieces[1::2]) or "Literal" not in written:
        pieces = [written.replace("'", "").replace('"', "")]
    pieces[::2] = [re.sub(r"[A-Za-z_][\w.]*", word, piece) for piece in pieces[::2]]
    return "".join(pieces)
