"""mypy and pyright as their users run them: on files, with a config, and what they find as data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (str(ROOT), str(ROOT / "examples"))
# Kept from run to run: burler and what it imports need not be read anew.
CACHE = ROOT / ".mypy_cache" / "users"
# What --strict asks for beyond types that fit, taken back; pages use one name for several functions.
PLAIN = {
    "disallow_untyped_defs": False,
    "disallow_incomplete_defs": False,
    "disallow_untyped_calls": False,
    "disallow_untyped_decorators": False,
    "disallow_any_generics": False,
    "disallow_subclassing_any": False,
    "warn_return_any": False,
    "disable_error_code": "no-redef, var-annotated",
}

# Packages behind burler's functions, of which no file says a type: half of what there is to read.
WITHIN = (
    *("azure", "cryptography", "duckdb", "graphql", "hypothesis", "markdown_it", "numpy", "opentelemetry", "pandas"),
    *("polars", "pydantic", "pydantic_core", "pyiceberg", "pyparsing", "rich", "tenacity", "zeep"),
)


class Found(NamedTuple):
    """One error: where it is, and what the checker calls it."""

    file: str
    line: int
    rule: str
    text: str


def mypy(files: Sequence[Path], *, plain: Sequence[str], work: Path) -> list[Found]:
    """Errors that ``mypy --strict`` finds; the files are seen as a user's, burler as an installed package.

    Args:
        plain: modules that have no annotations, as patterns: what is in their functions is looked into all the same.
        work: a folder for the config.
    """
    given = {
        "strict": True,
        "mypy_path": os.pathsep.join(SOURCES),
        "cache_dir": CACHE,
        "explicit_package_bases": True,
        "follow_imports": "silent",
        "ignore_missing_imports": True,
    }
    # What is wrong in burler itself is no error of a user's, and what is inside of its functions need not be read.
    sections = {
        "mypy": given,
        "mypy-burler.*": {"ignore_errors": True},
        f"mypy-{','.join(f'{name}.*' for name in WITHIN)}": {"follow_imports": "skip"},
        **{f"mypy-{pattern}": PLAIN for pattern in plain},
    }
    config = work / "mypy.ini"
    config.write_text(
        "".join(
            f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in section.items())
            for name, section in sections.items()
        )
    )
    command = [sys.executable, "-m", "mypy", "--config-file", config, "--output", "json", *files]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr + done.stdout
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        Found(Path(one["file"]).name, one["line"], one["code"], one["message"])
        for one in lines
        if one["severity"] == "error"
    ]


def pyright(program: Path, folders: Mapping[Path, str], settings: Mapping[str, Any], *, work: Path) -> list[Found]:
    """Errors that pyright finds.

    Args:
        program: the command.
        folders: folder or file -> ``"strict"`` or ``"basic"``.
        settings: of pyright's config.
        work: a folder for the config.
    """
    named = {os.path.relpath(folder, work): mode for folder, mode in folders.items()}
    config = {
        "include": list(named),
        "exclude": ["**/__pycache__"],
        "strict": [folder for folder, mode in named.items() if mode == "strict"],
        "typeCheckingMode": "basic",
        "reportMissingImports": "none",  # pages name packages that need not be here
        "extraPaths": list(SOURCES),
        **settings,
    }
    (work / "pyrightconfig.json").write_text(json.dumps(config))
    command = [program, "--outputjson", "--pythonpath", sys.executable, "-p", work]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] >= len(folders), "pyright saw too few files"
    return [
        Found(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", ""), one["message"])
        for one in told["generalDiagnostics"]
        if one["severity"] == "error"
    ]
