"""A tap, named so that another process finds it: as the command line names it, or by value where there is no name."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.declare.tap import Tap
from burler.engine.run.apps import load_app
from burler.errors import UsageError
from burler.extras import require
from burler.logs import short


@dataclass(frozen=True, slots=True)
class AppRef:
    """How to get the tap in another process.

    ``text`` is APP as the command line takes it: a file, a module, ``module:attribute``, an installed tap's command.
    ``value`` holds a tap that no import finds (of a script, a notebook), pickled with the code it declares. ``path``
    are the folders that modules were found in: those that the other process has, too, are looked through there.
    """

    text: str = ""
    value: bytes = field(default=b"", repr=False)
    path: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, app: str | Path | Tap) -> AppRef:
        """A reference to a tap, or to what APP names.

        Raises:
            UsageError: a tap that has no name in any module and can't be sent by value either; the error says why.
            AppError: APP names no tap.
        """
        if isinstance(app, Tap):
            named = _name_of(app)
            return cls(named, path=_path()) if named else cls(value=_by_value(app), path=_path())
        text = str(app)
        target, colon, attribute = text.partition(":")
        if Path(target).exists():  # a relative path means another file elsewhere
            text = f"{Path(target).resolve()}{colon}{attribute}"
        load_app(text)  # what is wrong shows here, once, and its folder is on the path from here on
        return cls(text, path=_path())

    def load(self) -> Tap:
        """The tap.

        Raises:
            AppError: nothing of that name is here, or it fails to import.
            UsageError: the tap that was sent needs what is not here.
        """
        for folder in self.path:
            if folder not in sys.path and Path(folder).exists():
                sys.path.append(folder)
        if self not in _looked_for:  # once: with pyspark's zip on the path it takes a tenth of a second each time
            _looked_for.add(self)
            importlib.invalidate_caches()
        if self.text:
            return load_app(self.text)
        try:
            tap = pickle.loads(self.value)
        except Exception as error:
            raise UsageError(
                f"the tap that was sent can't be made here: {short(error)}.\n"
                "Install what it imports where it runs, or put the tap into a module of its own."
            ) from error
        assert isinstance(tap, Tap)
        return tap


_looked_for: set[AppRef] = set()


def _path() -> tuple[str, ...]:
    """The folders that this process finds modules in, but for Python's own."""
    own = tuple({sys.prefix, sys.base_prefix})
    return tuple(str(Path(one).resolve()) for one in sys.path if not one.startswith(own) and Path(one).is_dir())


def _name_of(tap: Tap) -> str | None:
    """``module:attribute``, where another process can import it; None for a tap of ``__main__``, of a notebook, or one
    that a function has made."""
    for name, module in _modules():
        for attribute, value in list(vars(module).items()):
            if value is tap and _is_importable(name, module):
                return f"{name}:{attribute}"
    return None


def _modules() -> Iterator[tuple[str, Any]]:
    for name, module in list(sys.modules.items()):
        if name != "__main__" and not name.startswith(("burler.", "pyspark")) and hasattr(module, "__dict__"):
            yield name, module


def _is_importable(name: str, module: Any) -> bool:
    """Whether an import of this name, elsewhere, gives this module: it stands in a file where the name says."""
    file = getattr(module, "__file__", None)
    if file is None or getattr(module, "__name__", None) != name:
        return False
    parts = name.split(".")
    path = Path(file).resolve()
    path = path.parent if path.name == "__init__.py" else path.with_suffix("")
    found = {Path(one).resolve() for one in sys.path}
    return list(path.parts[-len(parts) :]) == parts and path.parents[len(parts) - 1] in found


def _by_value(tap: Tap) -> bytes:
    """A tap as bytes, with the functions of ``__main__`` (and of modules that no import finds) in them.

    Raises:
        UsageError: something that it declares can't be pickled.
    """
    cloudpickle = require("pyspark.cloudpickle", extra="spark", needed_for="a tap of a script or notebook in Spark")
    tap.seal()
    unfindable = [module for name, module in _modules() if tap in _values(module) and not _is_importable(name, module)]
    for module in unfindable:
        cloudpickle.register_pickle_by_value(module)
    try:
        value: bytes = cloudpickle.dumps(tap)
        return value
    except Exception as error:
        raise UsageError(
            f"{tap.name} ({tap.place}): it can't be sent to other processes: {short(error)}.\n"
            "Its functions use an object that can't be pickled, as a client or a lock. Make it in the @tap.client "
            "function, or put the tap into a module that can be imported."
        ) from error
    finally:
        for module in unfindable:
            cloudpickle.unregister_pickle_by_value(module)


def _values(module: Any) -> list[Any]:
    return [value for value in list(vars(module).values()) if isinstance(value, Tap)]
