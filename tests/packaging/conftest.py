"""burler's wheel and sdist, built once for the tests of this folder."""

from __future__ import annotations

import importlib.metadata
import shutil

import pytest

from tests.packaging.artifacts import build, copy_of_tree, metadata, unpacked, version_of


def _can_build() -> bool:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= 77
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="session")
def sdist(tmp_path_factory):
    if not _can_build():
        pytest.skip("building needs setuptools 77 or newer: pip install setuptools")
    place = tmp_path_factory.mktemp("sdist")
    return build("sdist", copy_of_tree(place / "tree"), place / "dist")


@pytest.fixture(scope="session")
def wheel(sdist, tmp_path_factory):
    """Built of the sdist, as pip does where there is no wheel."""
    place = tmp_path_factory.mktemp("wheel")
    tree = unpacked(sdist, place / "tree")
    made = build("wheel", tree, place / "dist")
    shutil.rmtree(place / "tree")
    return made


@pytest.fixture(scope="session")
def version(wheel):
    return version_of(metadata(wheel))
