"""The environments of the programs that others wrote: made once, then kept. What they need does not go together."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
PEERS = _ROOT / ".venv-peers"
# singer-sdk is a dependency of the target; with s3 and parquet it reads batch files of those kinds, too.
PACKAGES = ["meltanolabs-target-postgres>=0.8", "singer-sdk[parquet,s3]>=0.54", "meltanolabs-tap-postgres>=0.10"]
OLD_PEERS = _ROOT / ".venv-peers" / "old"
OLD_PACKAGES = ["target-jsonl>=0.1.4"]  # of the years before BATCH: it knows RECORDs alone
# Taps whose libraries go with no other's: the Singer SDK of 2024, the singer-python of before.
TAPS = {
    "rest": ["tap-rest-api-msdk>=1.4", "setuptools<81"],  # its library wants pkg_resources, which later ones lack
    "s3-csv": ["pipelinewise-tap-s3-csv>=3"],
    # A tap of 2018 and the checker of then, which go together. The tap does not say that it needs pytz.
    "gitlab": ["tap-gitlab>=0.5.1,<1", "pytz", "singer-tools>=0.4.1"],
}
# Taps that no test needs, for verify_taps.py.
FURTHER_TAPS = {
    "events": ["tap-rest-api>=0.2.22"],
    "incremental-postgres": ["pipelinewise-tap-postgres>=1.8"],
    "jsonl": ["tap-jsonl>=0.3.1"],
    "csv-folder": ["tap-csv-folder==0.0.1a1"],
    "dbf": ["tap-dbf>=0.1.25"],
}
# What docs/comparison.md compares, for compared.py; the Singer SDK is there already.
COMPARED = {"dlt": ["dlt[duckdb]>=1.31"], "airbyte-cdk": ["airbyte-cdk>=7.39"]}

# For tests/typing. pyright brings its JavaScript with it, and node comes as a wheel: nothing is fetched at run time.
PYRIGHT = _ROOT / ".venv-pyright"
PYRIGHT_PACKAGES = ["pyright[nodejs]>=1.1.400"]


MELTANO = ["meltano>=4.4"]


class NotInstalled(Exception):
    """pip could not install the peers; the text says why."""


def make() -> Path:
    """The bin folder of the environment that has the Singer SDK.

    Raises:
        NotInstalled: see there.
    """
    return _made(PEERS, PACKAGES)


def make_old() -> Path:
    """The bin folder of the environment that has a target of older days.

    Raises:
        NotInstalled: see there.
    """
    make()  # it removes what it does not know
    return _made(OLD_PEERS, OLD_PACKAGES)


def make_tap(name: str) -> Path:
    """The bin folder of the environment that has one of ``TAPS`` or ``FURTHER_TAPS``.

    Raises:
        NotInstalled: see there.
    """
    make()
    return _made(PEERS / name, {**TAPS, **FURTHER_TAPS}[name])


def make_pyright() -> Path:
    """The bin folder of the environment that has pyright.

    Raises:
        NotInstalled: see there.
    """
    return _made(PYRIGHT, PYRIGHT_PACKAGES)


def make_compared(name: str) -> Path:
    """The bin folder of the environment that has ``singer-sdk`` or one of ``COMPARED``.

    Raises:
        NotInstalled: see there.
    """
    return make() if name == "singer-sdk" else _made(PEERS / f"compared-{name}", COMPARED[name])


def make_meltano() -> dict[str, Path]:
    """The bin folders of the environments that have Meltano, and an old target: by the names of their commands.

    Raises:
        NotInstalled: see there.
    """
    return {"target-jsonl": make_old(), "meltano": _made(PEERS / "meltano", MELTANO)}


def _made(folder: Path, packages: list[str]) -> Path:
    with _alone():
        return _installed(folder, packages)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One process at a time: tests run on several."""
    with (_ROOT / ".venv-peers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _installed(folder: Path, packages: list[str]) -> Path:
    stamp = folder / ".for-peers"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        if not _by_uv(folder, packages):
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            _by_pip(folder, packages)
        stamp.write_text(wanted)
    return folder / "bin"


def _by_uv(folder: Path, packages: list[str]) -> bool:
    """Make it with uv, in a tenth of the time. False where it can't: pip's settings mean nothing to it."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        return False
    made = [uv, "venv", "-q", "--seed", "-p", sys.executable, folder]
    filled = [uv, "pip", "install", "-q", "-p", folder / "bin" / "python", *packages]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return all(
            subprocess.run(one, capture_output=True, timeout=180, check=False).returncode == 0 for one in (made, filled)
        )
    return False


def _by_pip(folder: Path, packages: list[str]) -> None:
    # Bytecode is made of what is used, which is little.
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    pip += ["install", "-q", "--no-compile", *packages]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(done.stderr.strip()[-300:])
