"""The registry: collects what decorators, handles and classes say, and at ``seal()`` makes the frozen specs of it.

Parts of a stream may be declared in any order and in any style. What can be judged alone is judged when it
is declared; what needs the whole (a bookmark for a stream that nobody syncs) is judged at ``seal()``,
all gaps at once, each with file:line.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from burler.call import gives_nothing, may_emit, wanted
from burler.declare import checks
from burler.declare.option_checks import overlap_of, partition_key_of, partition_order_of, runs_at_once, runs_on
from burler.declare.options import check_name, parse_options
from burler.declare.spec import Retry, StreamSpec, UserFunction
from burler.declare.strategies import EndOfSync, needs_order
from burler.errors import DeclarationError
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, LOG_BASED

SYNC_PARAMETERS = ("client", "config", "state", "catalog", "stream", "parent", "partition")
BOOKMARK_PARAMETERS = ("record", "state", "stream", "children", "partition")
SCHEMA_PARAMETERS = ("client", "config")
METADATA_PARAMETERS = ("breadcrumb", "sub_schema", "field", "key_properties", "stream", "client", "config")
TRANSFORM_PARAMETERS = ("record", "stream", "state", "client", "config", "partition")
PARTITIONS_PARAMETERS = ("client", "config", "state", "catalog", "stream")
TAIL_PARAMETERS = ("client", "config", "state", "catalog", "stream")
WAKE_PARAMETERS = ("client", "config", "stream")
ACKNOWLEDGE_PARAMETERS = ("bookmark", "state", "stream", "client", "config")
CLIENT_PARAMETERS = ("config",)
DISCOVER_PARAMETERS = ("client", "config")

_SLOTS = {"schema_fn": "schema", "emitted_by": "sync"}  # two spellings of one thing
_CALLED = {
    "sync": "sync function",
    "bookmark": "bookmark function",
    "metadata": "metadata function",
    "post_transform": "post_transform function",
    "partitions": "partitions function",
    "acknowledge": "acknowledge function",
    "tail": "tail function",
    "wake": "wake function",
    "setup_retry": "setup_retry function",
    "fixed_metadata": "metadata mapping",
    "strategy": "bookmark_strategy",
}


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A sync function that a chain names by text: ``tap.stream("thing").sync("sync_a_thing")``. It is looked for
    at ``seal()``, in the module that names it."""

    name: str
    namespace: Mapping[str, Any]
    place: str


class Registry:
    """What one tap declares. Not shared between taps; sealed once a mode begins."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, Any]] = {}
        self._places: dict[tuple[str, str], str] = {}
        self._sealed: dict[str, StreamSpec] | None = None
        self._lock = threading.Lock()
        self.client: UserFunction | None = None
        self.discover: UserFunction | None = None
        self.classes: set[type] = set()

    def __getstate__(self) -> dict[str, Any]:
        """What is declared, for another process: no lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def set_function(self, part: str, function: UserFunction) -> None:
        """A function of the tap itself (``client`` or ``discover``); one of each."""
        self.check_open(function.place)
        earlier: UserFunction | None = getattr(self, part)
        if earlier is not None:
            what = "client" if part == "client" else "discover function"
            raise DeclarationError(
                f"{function.place}: the tap has a {what} already ({earlier.place}). Keep one of the two."
            )
        setattr(self, part, function)

    def declare(self, stream: str, part: str, value: Any, *, place: str) -> None:
        """Note one part (a field of :class:`StreamSpec`) of a stream.

        Raises:
            DeclarationError: the part was declared before, or the tap is running already.
        """
        self.check_open(place)
        check_name(stream, place)
        _check_body(stream, part, value, place)
        self.check_free(stream, part, place=place)
        self._places[(stream, _SLOTS.get(part, part))] = place
        parts = self._parts.setdefault(stream, {})
        parts[part] = value
        parts.setdefault("first_place", place)

    def check_free(self, stream: str, part: str, *, place: str) -> None:
        """Refuse a part that was declared before.

        Raises:
            DeclarationError: it was; says where.
        """
        slot = _SLOTS.get(part, part)
        earlier = self._places.get((stream, slot))
        if earlier is not None:
            what = _CALLED.get(slot, slot)
            article = "an" if what[0] in "aeio" else "a"
            raise DeclarationError(
                f"stream '{stream}' ({place}): has {article} {what} already ({earlier}). Keep one of the two."
            )

    def declare_options(
        self, stream: str, options: Mapping[str, Any], *, place: str, beside: tuple[str, ...] = ()
    ) -> None:
        """Note a stream and its options, parsed here; ``beside``: see ``parse_options``.

        Raises:
            DeclarationError: see ``parse_options``; an option that was given before.
        """
        self.check_open(place)
        check_name(stream, place)
        parsed = parse_options(stream, place, options, beside=beside)
        for part, value in parsed.items():
            self.declare(stream, part, value, place=place)
        self._parts.setdefault(stream, {}).setdefault("place", place)

    def declare_partition_options(self, stream: str, *, order: Any, key: Any, place: str) -> None:
        """Note what is said of a stream's partitions: ``order`` "asc" or "none", ``key`` a field or a function.

        Raises:
            DeclarationError: another order; a key that is neither.
        """
        where = f"stream '{stream}' ({place})"
        said = {"partition_order": partition_order_of(order, where), "partition_key": partition_key_of(key, where)}
        for part, value in said.items():
            if value is not None:
                self.declare(stream, part, value, place=place)

    def declare_overlap(self, stream: str, overlap: Any, *, place: str) -> None:
        """Note whether a stream's tail function is called before its sync function.

        Raises:
            DeclarationError: neither True nor False.
        """
        if overlap_of(overlap, f"stream '{stream}' ({place})"):
            self.declare(stream, "overlap", True, place=place)

    def declare_module(self, stream: str, module_file: str | None) -> None:
        """Note the file that declares a stream's schema: relative references count from there."""
        if module_file is not None:
            self._parts[stream]["module_file"] = module_file

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
        return tuple(self._parts)

    def has(self, stream: str, part: str) -> bool:
        """Whether a part of a stream was declared."""
        return (stream, _SLOTS.get(part, part)) in self._places

    def seal(self) -> dict[str, StreamSpec]:
        """The frozen specs; a pattern such as ``public.*`` stands for streams that discovery finds. Every
        further declaration is refused.

        Raises:
            DeclarationError: all that does not fit together, one line each.
        """
        from burler.declare.option_gaps import check_options
        from burler.declare.tail_gaps import check_tail

        with self._lock:
            if self._sealed is None:
                gaps: list[str] = []
                specs = {name: self._spec(name, gaps) for name in self._parts}
                for name, spec in specs.items():
                    needs_schema = self.discover is None and (self.has(name, "sync") or self.has(name, "tail"))
                    checks.check_spec(spec, specs, gaps, needs_schema=needs_schema)
                    check_options(spec, specs, self._parts[name], gaps)
                    check_tail(spec, specs, self._parts[name], gaps)
                if self.client is None:
                    gaps += checks.no_client(specs.values(), self.discover)
                if gaps:
                    raise DeclarationError("\n".join(gaps))
                self._sealed = {name: _inherit(spec, specs) for name, spec in specs.items()}
            return self._sealed

    def _spec(self, name: str, gaps: list[str]) -> StreamSpec:
        parts = dict(self._parts[name])
        said = [self._places.get((name, part)) for part in ("sync", "tail")]
        place = said[0] or said[1] or parts.get("place") or parts["first_place"]
        if isinstance(parts.get("sync"), NamedFunction):
            parts["sync"] = _find(parts["sync"], name, gaps)
        elif all(parts.get(part) is None for part in ("sync", "tail", "emitted_by")):
            gaps.append(checks.no_sync(name, place, self._places, self._parts))
        known = {field.name for field in fields(StreamSpec)}
        given = {key: value for key, value in parts.items() if key in known and value is not None}
        given["place"] = place
        if parts.get("replication_method") is None:
            rising = parts.get("replication_key") is not None or parts.get("bookmark") is not None
            pushed = parts.get("sync") is None and parts.get("tail") is not None  # never the whole table
            given["replication_method"] = INCREMENTAL if rising else LOG_BASED if pushed else FULL_TABLE
        given["method_said"] = parts.get("replication_method") is not None
        given.setdefault("order", "asc" if needs_order(given.get("strategy", EndOfSync())) else "none")
        if parts.get("retry_sync_on") is not None:
            given["retry"] = Retry(parts["retry_sync_on"], parts.get("setup_retry"), parts.get("max_retries", 3))
        return StreamSpec(tap_stream_id=name, **given)


def _check_body(stream: str, part: str, value: Any, place: str) -> None:
    """Refuse a function whose body can't do what it is for, seen from its code."""
    if part == "post_transform" and gives_nothing(value.fn):
        raise DeclarationError(
            f"stream '{stream}' ({place}): its post_transform function returns nothing, so no row would come. "
            "Give the row back: return record."
        )
    if part == "partitions" and gives_nothing(value.fn):
        raise DeclarationError(
            f"stream '{stream}' ({place}): its partitions function gives nothing, so no row would come. Yield a dict "
            "for each: yield {'account': account}."
        )
    if part == "tail" and gives_nothing(value.fn) and not may_emit(value.fn):
        raise DeclarationError(
            f"stream '{stream}' ({place}): its tail function gives nothing, so no row would come. Yield the rows; "
            "where something that it calls emits them, return what that gives."
        )
    if part == "wake":
        runs_on(value, f"stream '{stream}': its wake function")
    if part in ("acknowledge", "setup_retry"):
        runs_at_once(value, f"stream '{stream}': its {part} function")


def _find(named: NamedFunction, stream: str, gaps: list[str]) -> UserFunction | None:
    """The function that a chain names, or a gap."""
    fn = named.namespace.get(named.name)
    if fn is None:
        gaps.append(checks.no_function(stream, named.name, named.place, named.namespace))
        return None
    try:
        return UserFunction(fn, wanted(fn, SYNC_PARAMETERS, what=f"the sync function of '{stream}'"), named.place)
    except DeclarationError as error:
        gaps.append(str(error))
        return None


def _inherit(spec: StreamSpec, specs: dict[str, StreamSpec]) -> StreamSpec:
    """A stream that is synced in the run of another one is replicated as that one is, unless it says
    otherwise: were it taken for a full table, each increment would drop the rows before it."""
    line = checks.line_of(spec, specs)
    spec = replace(spec, root=line[-1].tap_stream_id)
    if not spec.method_said and spec.replication_method == FULL_TABLE:
        above = next((one for one in line[1:] if one.replication_method != FULL_TABLE), spec)
        return replace(spec, replication_method=above.replication_method)
    return spec
