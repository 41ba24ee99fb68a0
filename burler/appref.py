"""Where an app is: what APP names on the command line, and a tap named so that another process finds it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from burler.declare.app import App
from burler.declare.tap import Tap
from burler.errors import AppError, UsageError
from burler.extras import require
from burler.logs import broken_import, short
from burler.suggest import nearest


def load_app(app: str | Path | Tap) -> App:
    """A tap, or what APP names: ready to run.

    ``tap_crm.py``, ``examples/tap_git`` (a folder with ``__init__.py``), ``tap_crm``, ``tap_crm:tap``,
    ``tap-crm`` (a console script that is some tap's ``cli``).

    Raises:
        AppError: nothing of that name, it fails to import, or it does not hold exactly one tap.
        DeclarationError: what the tap declares does not fit together.
    """
    return (app if isinstance(app, Tap) else find_tap(str(app))).seal()


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
        find_tap(text)  # what is wrong shows here, once, and its folder is on the path from here on
        return cls(text, path=_path())

    def load(self) -> App:
        """The tap, ready to run.

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
        return tap.seal()


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


# ---- APP on the command line -----------------------------------------------------------------------------------------


def find_tap(name: str) -> Tap:
    """The tap that APP names, which may still declare; see :func:`load_app`."""
    target, colon, attribute = name.partition(":")
    path = Path(target)
    if target.endswith(".py") or "/" in target or (path / "__init__.py").exists() or target in (".", ".."):
        module = _load_file(path, name)
    else:
        script = None if colon else _script(target)
        if script is not None:
            return script
        module = _load_module(target, name)
    if colon:
        return _attribute(module, attribute, name)
    return _only_tap(module, name)


def _load_file(path: Path, name: str) -> ModuleType:
    if not path.exists():
        raise AppError(f"APP '{name}': there is no file {path}.{_near(path)}")
    if path.is_dir():
        path = path / "__init__.py"
        if not path.exists():
            raise _no_init(name, path.parent)
    path = path.resolve()
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module_name = ".".join(parts)
    loaded = sys.modules.get(module_name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    if len(parts) > 1 or path.name == "__init__.py":
        return _import(module_name, name)
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise AppError(f"APP '{name}': {path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    with _import_errors(name):
        spec.loader.exec_module(module)
    return module


def _load_module(target: str, name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found = None
    with contextlib.suppress(ModuleNotFoundError, ValueError), _import_errors(name, but=target):
        found = importlib.util.find_spec(target)  # imports the packages above the module
    if found is None or found.origin is None:  # a folder without __init__.py is found as an empty package
        if Path(target).is_dir():
            raise _no_init(name, Path(target))
        raise AppError(
            f"APP '{name}': no file, module or installed tap of that name.{_near(Path(target))} "
            "Give a file (tap_crm.py), a module (tap_crm), module:attribute, or a tap's command."
        )
    return _import(target, name)


def _near(path: Path) -> str:
    """What is spelt like it: a Python file or a package beside it, or the command of an installed tap."""
    names = {entry.name: entry.name for entry in entry_points(group="console_scripts") if entry.name.startswith("tap-")}
    with contextlib.suppress(OSError, ValueError):
        beside = [one for one in path.parent.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()]
        names |= {str(one.with_suffix("")): str(one) for one in beside}
        path = path.with_suffix("")
    near = nearest(str(path), names)
    return f" Did you mean '{names[near]}'?" if near else ""


def _no_init(name: str, folder: Path) -> AppError:
    """The error of a folder that is no package; it names the package in it that has the tap's name, if there is one:
    the folder may be a project, as ``burler new`` makes them."""
    inner = folder / folder.resolve().name.replace("-", "_")
    cure = f"did you mean {inner}?" if (inner / "__init__.py").exists() else "give the file that declares the tap."
    return AppError(f"APP '{name}': the folder holds no __init__.py; {cure}")


def _import(module_name: str, name: str) -> ModuleType:
    with _import_errors(name):
        module = importlib.import_module(module_name)
    return module


@contextlib.contextmanager
def _import_errors(name: str, but: str = "") -> Iterator[None]:
    """Whatever importing a user's module raises becomes one error that says where.

    Args:
        but: APP itself: that there is no such module comes through.
    """
    try:
        yield
    except UsageError:
        raise  # it says where; others, as of a running stream's function called by the module, do not
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and but and f"{but}.".startswith(f"{error.name}."):
            raise
        raise AppError(f"APP '{name}' {broken_import(error)}") from error


def _script(target: str) -> Tap | None:
    """The tap of an installed command: its ``cli``, or the one tap of the module that the command is in."""
    for entry in entry_points(group="console_scripts", name=target):
        with _import_errors(target):
            command = entry.load()
        owner = getattr(command, "__self__", None)
        if isinstance(owner, Tap):
            return owner
        taps = _taps(sys.modules[entry.module])
        if len(taps) == 1:
            return taps[0][1]
    return None


def _attribute(module: ModuleType, attribute: str, name: str) -> Tap:
    value: Any = module
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if isinstance(value, Tap):
        return value
    if value is not None:
        raise AppError(
            f"APP '{name}': '{attribute}' of module {module.__name__} is {type(value).__name__}, not a burler.Tap."
        )
    known = [key for key, _ in _taps(module)]
    hint = f" Its taps: {', '.join(known)}." if known else ""
    raise AppError(f"APP '{name}': module {module.__name__} has no '{attribute}'.{hint}")


def _taps(module: ModuleType) -> list[tuple[str, Tap]]:
    """The different taps a module holds, each under its first name."""
    named: dict[int, tuple[str, Tap]] = {}
    for key, value in vars(module).items():
        if isinstance(value, Tap):
            named.setdefault(id(value), (key, value))
    return list(named.values())


def _only_tap(module: ModuleType, name: str) -> Tap:
    taps = _taps(module)
    if len(taps) == 1:
        return taps[0][1]
    if not taps:
        raise AppError(f"APP '{name}' holds no tap. It should have a line like: tap = burler.tap(\"tap-name\")")
    listed = ", ".join(f"{name}:{key}" for key, _tap in taps)
    raise AppError(f"APP '{name}' holds {len(taps)} taps; say which: {listed}")
