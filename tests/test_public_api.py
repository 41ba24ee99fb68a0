"""What users import: names, sizes, docstrings, annotations."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest

import burler
import burler.config
import burler.schema
import burler.singer
import burler.spec
import burler.verify

ROOT = Path(burler.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


PACKAGES = (burler, burler.config, burler.schema, burler.singer, burler.spec, burler.verify)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_all_is_what_is_there(package):
    """Names come when they are asked for; none that is not listed may be there beside them."""
    assert [name for name in package.__all__ if isinstance(getattr(package, name), types.ModuleType)] == []
    present = {
        name for name, value in vars(package).items() if name[0] != "_" and not isinstance(value, types.ModuleType)
    }
    assert present - {"annotations", "lazy_names", "TYPE_CHECKING"} == set(package.__all__)
    assert list(package.__all__) == sorted(package.__all__, key=lambda name: (not name.isupper(), name))
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", ["messages", "catalog"])
def test_two_modules_of_singer_are_public(name):
    """What they hold of burler.singer's names is the same thing."""
    module = importlib.import_module(f"burler.singer.{name}")
    own = {key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    both = own & set(burler.singer.__all__)
    assert both >= {"messages": {"Schema", "State"}, "catalog": {"Catalog", "CatalogEntry"}}[name]
    assert all(getattr(burler.singer, key) is getattr(module, key) for key in both)


LAZY = sorted(path.parent for path in ROOT.rglob("__init__.py") if "= lazy_names(" in path.read_text())


@pytest.mark.parametrize("folder", LAZY, ids=lambda folder: str(folder.relative_to(ROOT.parent)))
def test_dir_shows_the_public_names_and_nothing_else(folder):
    """What the TAB key offers, before and after somebody has used a name; each of them is there."""
    name = ".".join(folder.relative_to(ROOT.parent).parts)
    code = f"""if True:
        import importlib, {name} as package
        more = {{name for name in dir(package) if name not in package.__all__}}
        assert dir(package) == sorted({{*package.__all__, *more}}), dir(package)
        for name in more:  # packages below it
            assert importlib.import_module(package.__name__ + "." + name) is getattr(package, name), name
        scope = {{}}
        exec("from {name} import *", scope)
        assert scope.keys() - {{"__builtins__"}} == set(package.__all__)
        assert set(dir(package)) == {{*package.__all__, *more}}, dir(package)
        print(*sorted(more))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packages = "batch config errors files graphql http lake patterns schema singer soap spec sql verify"
    assert done.stdout.strip() == (packages if name == "burler" else "")


def test_dir_shows_packages_that_the_user_has_imported():
    code = "import burler, burler.testing, burler.spark; print({'testing', 'spark'} <= set(dir(burler)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_classes_that_came_late_are_pickled():
    for cls in (burler.http.Offset, burler.graphql.Rows, burler.files.Csv, burler.JsonPage):
        assert pickle.loads(pickle.dumps(cls)) is cls


def test_a_name_and_its_module_do_not_get_in_each_others_way():
    """A submodule of the same name would hide the name once it is imported."""
    for package in PACKAGES:
        folder = Path(package.__file__).parent
        modules = {path.stem for path in folder.iterdir()}
        assert not modules & set(package.__all__) - {"config", "singer", "schema"}


def test_tap_stays_a_facade():
    methods = [name for name, _ in inspect.getmembers(burler.Tap, callable) if not name.startswith("_")]
    properties = [name for name, _ in inspect.getmembers(burler.Tap, lambda value: isinstance(value, property))]
    assert len(methods) + len(properties) <= 27
    assert set(methods) == {
        "ack",
        "acknowledge",
        "bookmark",
        "cli",
        "discover",
        "emit_record",
        "emit_records",
        "get_bookmark",
        "load_streams",
        "metadata",
        "partitions",
        "post_transform",
        "schema",
        "seal",
        "stream",
        "stream_metadata",
        "sync",
        "tail",
        "wake",
        "write_metadata",
    }
    assert set(properties) == {"client", "key_properties"}


def test_docstrings_and_annotations():
    assert [
        f"{path.relative_to(ROOT)}: {what}" for path in MODULES for what in _bare(ast.parse(path.read_text()))
    ] == []


def _bare(tree: ast.Module) -> list[str]:
    """What of a module has no docstring, or no annotation."""
    bare = [] if not tree.body or ast.get_docstring(tree) else ["the module"]

    def visit(body, inside):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if not ast.get_docstring(node):
                    bare.append(node.name)
                visit(node.body, node.name + ".")
            if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                name = inside + node.name
                if node.name != "__init__" and not ast.get_docstring(node) and not _is_accessor(node):
                    bare.append(name)
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                for i, argument in enumerate(arguments):
                    if argument.annotation is None and not (inside and i == 0):
                        bare.append(f"{name}({argument.arg})")
                if node.returns is None:
                    bare.append(f"{name} ->")

    visit(tree.body, "")
    return bare


def _is_accessor(node: ast.FunctionDef) -> bool:
    """A property's setter says nothing that its getter has not said, and an overload nothing but its types."""
    return any(
        (isinstance(mark, ast.Attribute) and mark.attr == "setter")
        or (isinstance(mark, ast.Name) and mark.id == "overload")
        for mark in node.decorator_list
    )


def test_every_error_has_its_exit_code():
    from burler import errors

    codes = {
        name: value.exit_code
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, burler.BurlerError)
    }
    assert codes == {
        "BurlerError": 1, "UsageError": 2, "AppError": 2, "ConfigError": 2, "CatalogError": 2, "StateError": 2,
        "DeclarationError": 2, "MissingExtra": 2, "StreamError": 1, "BadRecordError": 1, "OrderingError": 1,
        "UnsortedStreamError": 1,
        "PartialError": 1, "DataError": 1, "MessageError": 1, "BatchError": 1, "LakeError": 1, "StorageError": 1,
        "ExportError": 1,
        "SourceError": 1, "HttpError": 1, "NotFoundError": 1, "CredentialsError": 1, "NoAnswerError": 1,
        "NotModified": 1, "PagingError": 1, "GraphQLError": 1, "SoapError": 1, "SqlError": 1, "FileError": 1,
        "LockLost": 3, "OutputClosed": 4,
    }  # fmt: skip
    assert all(name in (errors.__doc__ or "") for name in codes)
