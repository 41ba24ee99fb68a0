"""The functions of an author's, a row each: what it may ask for, where the spec keeps it, what its body must do.

A new one is a row here, a field of ``StreamSpec``, and a method of ``Tap`` and of ``StreamHandle``; classes, checks and
errors have it from its row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from burler.call import gives_nothing, may_emit, place_of, wanted
from burler.declare.spec import UserFunction
from burler.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class Row:
    """What may be said of a stream: a function, or an option.

    Attributes:
        name: of the decorator or the option; in a class, of the method or attribute.
        field: of ``StreamSpec``, where that is not the name.
        called: in errors, where that is not the name.
        needs: what must be said of the stream as well.
        of_leader: it belongs to the stream in whose run rows come: none that hangs on another one has it, or (where
            this is "emitted_by") none that another one's function gives.
    """

    name: str
    _: KW_ONLY
    field: str = ""
    called: str = ""
    needs: tuple[str, ...] = ()
    of_leader: bool | Literal["emitted_by"] = False

    @property
    def part(self) -> str:
        """The field of ``StreamSpec``."""
        return self.field or self.name


@dataclass(frozen=True, slots=True)
class Hook(Row):
    """One kind of function.

    Attributes:
        parameters: what it may ask for.
        fault: what is wrong, in words with the cure, with a function that ``is_wrong``, seen from its code.
    """

    parameters: tuple[str, ...]
    fault: str = ""
    is_wrong: Callable[[Any], bool] = lambda fn: False

    def function(self, fn: Any, what: str = "") -> UserFunction:
        """A function, once its parameters are known to be ours; ``what`` it is, for the error.

        Raises:
            DeclarationError: see ``call.wanted``.
        """
        return UserFunction(fn, wanted(fn, self.parameters, what=what or f"the {self.name} function"), place_of(fn))

    def check_body(self, function: UserFunction, stream: str) -> None:
        """Refuse a function whose body can't do what it is for.

        Raises:
            DeclarationError: with the cure.
        """
        if self.is_wrong(function.fn):
            raise DeclarationError(f"stream '{stream}' ({function.place}): its {self.name} function {self.fault}")


def _is_generator(fn: Any) -> bool:
    return any(map(inspect.isgeneratorfunction, (fn, inspect.unwrap(fn), vars(type(fn)).get("__call__"))))


_RUN = ("client", "config", "state", "catalog", "stream")
_AT_ONCE = ("has a 'yield', so a call would run nothing of it. Leave out the yield.", _is_generator)
_ROWS = (
    Hook("sync", (*_RUN, "parent", "partition")),
    Hook("bookmark", ("record", "state", "stream", "children", "partition")),
    Hook("schema", ("client", "config"), field="schema_fn"),
    Hook("metadata", ("breadcrumb", "sub_schema", "field", "key_properties", "stream", "client", "config")),
    Hook(
        "post_transform",
        ("record", "stream", "state", "client", "config", "partition"),
        "returns nothing, so no row would come. Give the row back: return record.",
        gives_nothing,
    ),
    Hook(
        "partitions",
        _RUN,
        "gives nothing, so no row would come. Yield a dict for each: yield {'account': account}.",
        gives_nothing,
        of_leader=True,
    ),
    Hook(
        "tail",
        _RUN,
        "gives nothing, so no row would come. Yield the rows; where something that it calls emits them, return what "
        "that gives.",
        lambda fn: gives_nothing(fn) and not may_emit(fn),
        of_leader=True,
    ),
    Hook(
        "wake",
        ("client", "config", "stream"),
        "has no 'yield', so it would call nobody. Yield once when it is subscribed, and each time the stream should be "
        "polled.",
        lambda fn: not _is_generator(fn),
        of_leader=True,
    ),
    Hook("acknowledge", ("bookmark", "state", "stream", "client", "config"), *_AT_ONCE),
    Hook("setup_retry", ("client", "config", "stream", "error", "retry", "partition", "parent", "state"), *_AT_ONCE),
)
HOOKS = {hook.name: hook for hook in _ROWS}
"""Those of a stream, by name."""
HOOKS["ack"] = HOOKS["acknowledge"]
OF_TAP = {"client": Hook("client", ("config",)), "discover": Hook("discover", ("client", "config"))}
"""Those of the tap itself."""
