"""Functions of an author: what they may ask for by name, checked when they are declared; where they stand, and who
calls burler."""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.errors import DeclarationError
from burler.suggest import did_you_mean

Given = dict[str, Callable[[], Any]]
"""What a function may ask for, by name: what makes it."""


def place_of(fn: Any) -> str:
    """``tap_crm/__init__.py:14`` of a function, relative to the current folder where it lies below it."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return getattr(fn, "__qualname__", repr(fn))
    return f"{short_path(code.co_filename)}:{code.co_firstlineno}"


@functools.lru_cache(maxsize=512)
def short_path(path: str) -> str:
    """A path relative to the current folder if it lies below it."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


def wanted(fn: Callable[..., Any], allowed: tuple[str, ...], *, what: str) -> tuple[str, ...]:
    """The names a function asks for. Parameters with a default and an unknown name are the author's own.

    Raises:
        DeclarationError: a parameter that nothing can be given for, with the nearest known name.
    """
    if not callable(fn):
        raise DeclarationError(f"{what} must be a function, not {type(fn).__name__}.")
    if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise DeclarationError(
            f"{what} ({place_of(fn)}) is async; burler runs plain functions and generators. Leave out 'async'; what is "
            "to be awaited runs by asyncio.Runner().run(...), a step at a time."
        )
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:
        raise DeclarationError(
            f"{what} ({place_of(fn)}): its parameters can't be read; wrap it in a function."
        ) from None
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in allowed and parameter.kind is not parameter.POSITIONAL_ONLY:
            names.append(parameter.name)
        elif parameter.name in allowed:
            raise DeclarationError(
                f"{what} ({place_of(fn)}): unknown parameter '{parameter.name}': it stands before '/', and is given by "
                "name; leave out the '/'."
            )
        elif parameter.default is parameter.empty:
            raise DeclarationError(
                f"{what} ({place_of(fn)}): unknown parameter '{parameter.name}'."
                f"{did_you_mean(parameter.name, allowed)} It may ask for {', '.join(allowed)}."
            )
    return tuple(names)


def takes_one(fn: Any) -> bool:
    """Whether a plain function, or a method, can be called with one argument. One that was made in C shows it at its
    first call only, as ``operator.itemgetter("id")``."""
    if not callable(fn) or inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        return False
    try:
        inspect.signature(fn).bind(None)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def gives_nothing(fn: Any) -> bool:
    """Whether a plain function can give nothing but None: it has no ``yield``, and no ``return`` with a value. Seen
    from its code, so that a forgotten ``return`` shows when the tap is declared and not as rows that are missing."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None or inspect.isgeneratorfunction(fn) or hasattr(fn, "__wrapped__"):
        return False
    return _only_none(code)


def may_emit(fn: Any) -> bool:
    """Whether a function's code, or that of a function inside of it, emits rows by name (``stream.emit_record``), or
    hands its ``stream`` on to what may do so: then it need not yield."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return code is not None and (_emits(code) or _hands_on(code, "stream"))


def _emits(code: Any) -> bool:
    inner = (one for one in code.co_consts if hasattr(one, "co_names"))
    return any(name in ("emit_record", "emit_records") for name in code.co_names) or any(map(_emits, inner))


def _hands_on(code: Any, name: str) -> bool:
    """Whether a variable is used otherwise than by looking at its attributes."""
    if name in code.co_cellvars:
        return True
    loads = [step for step in dis.get_instructions(code) if not step.opname.startswith(("CACHE", "EXTENDED_ARG"))]
    for step, after in itertools.pairwise(loads):
        loaded = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if not step.opname.startswith(("LOAD_FAST", "STORE_FAST_LOAD_FAST")) or name not in loaded:
            continue
        if loaded[-1] != name or after.opname not in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
            return True
    return False


@functools.lru_cache(maxsize=512)
def _only_none(code: Any) -> bool:
    """Of a code object; kept, since a substream's function may be asked about for each row of its parent."""
    loaded: Any = _OTHER
    returns = False  # a function that only raises has none
    for step in dis.get_instructions(code):
        if step.opname in ("RETURN_VALUE", "RETURN_CONST"):
            returns = True
            # One that is jumped to returns what was loaded elsewhere: x if y else None.
            if step.opname == "RETURN_VALUE" and (step.is_jump_target or loaded is not None):
                return False
            if step.opname == "RETURN_CONST" and step.argval is not None:
                return False
        loaded = step.argval if step.opname == "LOAD_CONST" else _OTHER
    return returns


_OTHER = object()


def call(fn: Callable[..., Any], names: tuple[str, ...], given: Mapping[str, Callable[[], Any]]) -> Any:
    """Call ``fn`` with what it asked for. ``given`` maps a name to a function that gives the value, so
    that a client is made only for those who want one."""
    return fn(**{name: given[name]() for name in names})


@dataclass(frozen=True, slots=True)
class Caller:
    """``place`` is file:line for people; ``file`` the module's file, and ``namespace`` its names."""

    place: str
    file: str | None
    namespace: Mapping[str, Any]


def caller() -> Caller:
    """The nearest caller that is not burler's own code."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("burler."):
        frame = frame.f_back
    return Caller(
        f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}", frame.f_globals.get("__file__"), frame.f_globals
    )


def callers_folder() -> Path:
    """The folder of that caller's module, which relative paths count from, however deep in burler this is asked for.
    The current folder if the module is no file (a console)."""
    return Path(caller().file or "x").resolve().parent
