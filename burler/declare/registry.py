"""The registry: collects what decorators, handles and classes say, and at ``seal()`` makes the frozen specs of it.

Parts of a stream may be declared in any order and in any style. What can be judged alone is judged when it
is declared; what needs the whole (a bookmark for a stream that nobody syncs) is judged at ``seal()``,
all gaps at once, each with file:line.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from burler.call import Caller, caller
from burler.declare import checks
from burler.declare.field import check_mapping
from burler.declare.hooks import HOOKS, OF_TAP
from burler.declare.options import OPTIONS, check_name, read_options
from burler.declare.spec import Retry, StreamSpec, UserFunction
from burler.declare.strategies import EndOfSync, needs_order
from burler.errors import DeclarationError
from burler.schema.sources import as_source
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, LOG_BASED
from burler.suggest import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])

_SLOTS = {"schema_fn": "schema", "emitted_by": "sync"}  # two spellings of one thing
_HOOKS = {hook.part: hook for hook in HOOKS.values()}
_CALLED = {
    **{option.part: option.name for option in OPTIONS.values()},
    **{part: f"{hook.name} function" for part, hook in _HOOKS.items()},
    "fixed_metadata": "metadata mapping",
}
_SEALING = threading.Lock()  # of any tap: a registry can be pickled
_FIELDS = {one.name for one in fields(StreamSpec)}


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A sync function that a chain names by text: ``tap.stream("thing").sync("sync_a_thing")``. It is looked for
    at ``seal()``, in the module that names it."""

    name: str
    namespace: Mapping[str, Any]
    place: str

    def find(self, stream: str) -> UserFunction:
        """The function.

        Raises:
            DeclarationError: its module has none of that name, or it asks for what no sync function gets.
        """
        fn = self.namespace.get(self.name)
        if fn is None:
            functions = [key for key, value in self.namespace.items() if callable(value) and not key.startswith("_")]
            fact = f"there is no function '{self.name}' in this module.{did_you_mean(self.name, functions)}"
            raise DeclarationError(f"stream '{stream}' ({self.place}): {fact}")
        return replace(HOOKS["sync"].function(fn, f"the sync function of '{stream}'"), place=self.place)


@dataclass(slots=True)
class Declared:
    """What is said of one stream so far.

    Attributes:
        parts: fields of ``StreamSpec``, and the options of retries.
        places: where each was said; of what has two spellings, under one name.
        place: where the stream was named first with options.
        module_file: the file that relative references of its schema count from.
    """

    parts: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    place: str = ""
    module_file: str | None = None


class Registry:
    """What one tap declares. Not shared between taps; sealed once a mode begins."""

    def __init__(self) -> None:
        self.streams: dict[str, Declared] = {}
        self._sealed: dict[str, StreamSpec] | None = None
        self.functions: dict[str, UserFunction | None] = dict.fromkeys(OF_TAP)
        self.classes: set[type] = set()

    def set_function(self, name: str, function: UserFunction) -> None:
        """A function of the tap itself (``client`` or ``discover``); one of each."""
        self.check_open(function.place)
        earlier = self.functions[name]
        if earlier is not None:
            what = "client" if name == "client" else "discover function"
            raise DeclarationError(
                f"{function.place}: the tap has a {what} already ({earlier.place}). Keep one of the two."
            )
        self.functions[name] = function

    def decorator(
        self, name: str, stream: str, options: Mapping[str, Any] | None = None
    ) -> Callable[[Function], Function]:
        """A decorator that declares a function as a part of a stream.

        Args:
            name: of the hook.
            options: what is said beside it.
        """
        here = caller()
        check_name(stream, here.place, decorator=name)
        hook = HOOKS[name]

        def decorate(fn: Function) -> Function:
            function = hook.function(fn, f"the {hook.name} function of '{stream}'")
            self.check_open(function.place)
            self.check_free(stream, hook.part, place=function.place)  # else its options would be told as given twice
            if options is not None:
                self.declare_options(stream, options, place=function.place, beside=hook.name)
            self.declare(stream, hook.part, function, place=function.place)
            if hook.name == "schema":
                self.streams[stream].module_file = here.file
            return fn

        return decorate

    def declare_schema(self, stream: str, schema: Any, here: Caller) -> None:
        """Note a schema that is no function's; relative references count from the caller's file."""
        check_name(stream, here.place, decorator="schema")
        source = as_source(schema, where=f"stream '{stream}' ({here.place})")
        self.declare(stream, "schema", source, place=here.place)
        self.streams[stream].module_file = here.file

    def declare_metadata(self, stream: str, values: Any, place: str) -> None:
        """Note metadata that are given as a mapping."""
        check_name(stream, place, decorator="metadata")
        check_mapping(values, where=f"stream '{stream}' ({place})")
        self.declare(stream, "fixed_metadata", values, place=place)

    def declare(self, stream: str, part: str, value: Any, *, place: str) -> None:
        """Note one part (a field of :class:`StreamSpec`) of a stream.

        Raises:
            DeclarationError: the part was declared before, or the tap is running already.
        """
        self.check_open(place)
        check_name(stream, place)
        if isinstance(value, UserFunction):
            _HOOKS[part].check_body(value, stream)
        self.check_free(stream, part, place=place)
        declared = self.streams.setdefault(stream, Declared())
        declared.parts[part] = value
        declared.places[_SLOTS.get(part, part)] = place

    def check_free(self, stream: str, part: str, *, place: str) -> None:
        """Refuse a part that was declared before.

        Raises:
            DeclarationError: it was; says where.
        """
        slot = _SLOTS.get(part, part)
        if self.has(stream, slot):
            what = _CALLED[slot]
            raise DeclarationError(
                f"stream '{stream}' ({place}): has {'an' if what[0] in 'aeio' else 'a'} {what} already "
                f"({self.streams[stream].places[slot]}). Keep one of the two."
            )

    def declare_options(
        self, stream: str, options: Mapping[str, Any], *, place: str, file: str | None = None, beside: str | None = ""
    ) -> None:
        """Note a stream and its options.

        Args:
            file: of the module that speaks, which relative references of a schema count from.
            beside: the hook whose function they are given with; None: a class, which may have those of all hooks.

        Raises:
            DeclarationError: see ``read_options``; an option that was given before.
        """
        self.check_open(place)
        check_name(stream, place)
        read = read_options(f"stream '{stream}' ({place})", options, stream=stream, beside=beside)
        for part, value in read.items():
            self.declare(stream, part, value, place=place)
        declared = self.streams.setdefault(stream, Declared())
        declared.place = declared.place or place
        declared.module_file = file or declared.module_file

    def check_open(self, place: str) -> None:
        """Refuse what is declared while the tap is running."""
        if self._sealed is not None:
            raise DeclarationError(
                f"{place}: the tap is running, or has run; declare all streams when the module is imported. (In a "
                "notebook: run the cell with burler.tap(...) again, then this one.)"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams declared so far, in order."""
        return tuple(self.streams)

    def has(self, stream: str, part: str) -> bool:
        """Whether a part of a stream was declared."""
        return stream in self.streams and _SLOTS.get(part, part) in self.streams[stream].places

    def seal(self) -> dict[str, StreamSpec]:
        """The frozen specs; a pattern such as ``public.*`` stands for streams that discovery finds. Every
        further declaration is refused.

        Raises:
            DeclarationError: all that does not fit together, one line each.
        """
        with _SEALING:
            if self._sealed is None:
                gaps: list[str] = []
                specs = {name: self._spec(name, gaps) for name in self.streams}
                for name, spec in specs.items():
                    discovers = self.functions["discover"] is not None
                    gaps += checks.gaps(spec, specs, self.streams[name].parts, discovers=discovers)
                if self.functions["client"] is None:
                    gaps += checks.no_client(specs.values(), self.functions["discover"])
                if gaps:
                    raise DeclarationError("\n".join(gaps))
                self._sealed = {name: _inherit(spec, specs) for name, spec in specs.items()}
            return self._sealed

    def _spec(self, name: str, gaps: list[str]) -> StreamSpec:
        declared = self.streams[name]
        parts, places = dict(declared.parts), declared.places
        place = places.get("sync") or places.get("tail") or declared.place or next(iter(places.values()))
        if isinstance(parts.get("sync"), NamedFunction):
            try:
                parts["sync"] = parts["sync"].find(name)
            except DeclarationError as error:
                parts["sync"] = None
                gaps.append(str(error))
        elif not parts.keys() & {"sync", "tail", "emitted_by"}:
            have = [_CALLED[slot].removesuffix(" function").removesuffix(" mapping") for slot in places]
            givers = [key for key, other in self.streams.items() if other.parts.keys() & {"sync", "tail"}]
            gaps.append(checks.no_sync(name, place, have, givers))
        given = {part: value for part, value in parts.items() if part in _FIELDS and value is not None}
        if parts.get("replication_method") is None:
            rising = parts.get("replication_key") is not None or parts.get("bookmark") is not None
            pushed = parts.get("sync") is None and parts.get("tail") is not None  # never the whole table
            given["replication_method"] = INCREMENTAL if rising else LOG_BASED if pushed else FULL_TABLE
        given.setdefault("order", "asc" if needs_order(given.get("strategy", EndOfSync())) else "none")
        if "retry_sync_on" in parts:
            given["retry"] = Retry(parts["retry_sync_on"], parts.get("setup_retry"), parts.get("max_retries", 3))
        said = "replication_method" in parts
        return StreamSpec(name, place, module_file=declared.module_file, method_said=said, **given)


def _inherit(spec: StreamSpec, specs: dict[str, StreamSpec]) -> StreamSpec:
    """A stream that is synced in the run of another one is replicated as that one is, unless it says
    otherwise: were it taken for a full table, each increment would drop the rows before it."""
    line = checks.line_of(spec, specs)
    spec = replace(spec, root=line[-1].tap_stream_id)
    if not spec.method_said and spec.replication_method == FULL_TABLE:
        above = next((one for one in line[1:] if one.replication_method != FULL_TABLE), spec)
        return replace(spec, replication_method=above.replication_method)
    return spec
