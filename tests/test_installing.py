"""What errors say of packages that are missing must be right of a clone and of a wheel."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

import burler
from burler.errors import MissingExtra

PROJECT = Path(burler.__file__).parent.parent / "pyproject.toml"


def test_the_packages_of_an_extra_are_named_and_those_of_the_extras_in_it():
    said = str(MissingExtra("gcsfs", extra="gcs", needed_for="reading gs://"))
    assert said == (
        "reading gs:// needs the package 'gcsfs', of burler's extra 'gcs'. Install it: "
        "pip install 'gcsfs>=2025.7' 'fsspec>=2024.12' 'isal>=1.6'"
    )
    said = str(MissingExtra("pysail", extra="sail", needed_for="x"))
    assert "pip install 'pysail>=" in said and "'pandas<3'" in said


def test_every_extra_has_its_packages():
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    for extra, named in extras.items():
        shown = str(MissingExtra("x", extra=extra, needed_for="x")).partition("Install it: ")[2]
        said = set(re.findall(r"'([\w-]+)", shown))
        assert {re.split(r"[^\w-]", one)[0] for one in named} - {"singer-burler"} <= said, extra
        assert not {"burler", "singer-burler"} & said


def test_where_burler_was_never_installed_it_runs_from_its_clone(monkeypatch: pytest.MonkeyPatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert str(MissingExtra("s3fs", extra="s3", needed_for="x")).endswith("pip install '.[s3]' in burler's clone")
