"""What the engine behind a Spark session can do, and sessions on Spark Connect: a server's, our own, or Sail's.

Everything in burler that must take another way on Connect or Sail, or with an older Spark, asks
:func:`capabilities`; no other module looks at versions or classes.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from burler.errors import UsageError
from burler.extras import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind = Literal["classic", "connect", "sail"]

SAIL = "sail"
"""What ``remote`` is called with for an engine that burler starts itself."""

_REACH_SECONDS = 10.0

_NEWEST_FOR_SAIL_PYTHON = (4, 2)
"""Sail 0.7 calls Python functions as pyspark up to 4.2 did; with a later pyspark none of them runs there."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a session's engine can do.

    ``version`` is the older of the client's and the server's Spark. ``has_observe``: ``DataFrame.observe``.
    ``has_metadata``: the column ``_metadata`` and ``input_file_name()``. ``has_corrupt_record``: a line that does not
    parse is put aside instead of failing the read. ``runs_python``: Python functions and data sources run in its
    tasks. ``is_local``: its tasks run on this machine and see this machine's files.
    """

    kind: Kind
    version: tuple[int, int, int]
    has_observe: bool
    has_metadata: bool
    has_corrupt_record: bool
    runs_python: bool
    is_local: bool

    @property
    def has_filter_pushdown(self) -> bool:
        """Whether a Python data source may be handed filters (Spark 4.1)."""
        return self.kind != "sail" and self.version >= (4, 1)

    @property
    def has_admission_control(self) -> bool:
        """Whether a Python stream reader is told how much to read (Spark 4.2)."""
        return self.kind != "sail" and self.version >= (4, 2)

    @property
    def has_pipelines(self) -> bool:
        """Whether declarative pipelines run (Spark 4.1)."""
        return self.kind != "sail" and self.version >= (4, 1)


_known: weakref.WeakKeyDictionary[Any, Capabilities] = weakref.WeakKeyDictionary()


def capabilities(spark: SparkSession) -> Capabilities:
    """What the engine of ``spark`` can do. Asked once a session: on Connect that is two short calls."""
    found = _known.get(spark)
    if found is None:
        found = _known[spark] = _ask(spark)
    return found


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect: no ``sparkContext``, no JVM, no RDDs."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def task_slots(spark: SparkSession) -> int | None:
    """How many tasks a session runs at a time; None where it does not say so."""
    with contextlib.suppress(Exception):  # Connect has no context
        return max(1, int(spark.sparkContext.defaultParallelism))
    match = re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", str(spark.conf.get("spark.master", "") or ""))
    return int(match[1]) if match else None


def pyspark_version() -> tuple[int, int, int]:
    """The installed pyspark's version.

    Raises:
        MissingExtra: it is not installed.
    """
    return version_of(require("pyspark", extra="spark", needed_for="burler.spark").__version__)


def version_of(text: str) -> tuple[int, int, int]:
    """``4.3.0.dev1`` as (4, 3, 0); what is no number counts as 0."""
    numbers = [int(part) for part in re.findall(r"\d+", text)[:3]]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return major, minor, patch


def _ask(spark: SparkSession) -> Capabilities:
    version = min(pyspark_version(), version_of(spark.version))
    if not is_connect(spark):
        local = spark.sparkContext.master.startswith("local")
        return Capabilities("classic", version, True, True, True, True, local)
    if _is_sail(spark):
        runs_python = pyspark_version()[:2] <= _NEWEST_FOR_SAIL_PYTHON
        return Capabilities("sail", version, False, False, False, runs_python, _is_here(spark))
    local = (spark.conf.get("spark.master", None) or "").startswith("local") and _is_here(spark)
    return Capabilities("connect", version, True, True, True, True, local)


def _is_sail(spark: SparkSession) -> bool:
    """Sail has none of the confs that every Spark application has; then its own version number tells it."""
    try:
        if any(spark.conf.get(key, None) is not None for key in ("spark.app.id", "spark.master")):
            return False
        (row,) = spark.sql("select version()").collect()
    except Exception:  # a service that hides its confs; Sail does not
        return False
    return not str(row[0]).startswith(spark.version)


def _is_here(spark: SparkSession) -> bool:
    """Whether the server of a Connect session is on this machine."""
    return getattr(spark.client, "host", "") in ("localhost", "127.0.0.1", "::1", "[::1]")


# ---- sessions ---------------------------------------------------------------------------------------------------


def address_of(remote: str) -> str:
    """Host and port of a Connect URL, for messages: what follows may be a token.

    Raises:
        UsageError: it is no address of a Connect server.
    """
    try:
        parts = urlsplit(remote)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme != "sc" or not re.fullmatch(r"[\w.:%-]+", host or ""):
        raise UsageError(
            "remote: this is no address of a Spark Connect server. Give sc://HOST:PORT, local[N] for a server in this "
            "process, or sail"
        )
    return f"{host}:{port or 15002}"


def connect(remote: str, confs: Mapping[str, str]) -> SparkSession:
    """A session on a Spark Connect server that is there.

    Args:
        remote: ``sc://host:port/;token=...``.
        confs: set in the session; what is fixed once a server runs stays as it is there.

    Raises:
        MissingExtra: pyspark's part for Connect is not installed.
        UsageError: no address, no server behind it, or this process has a classic session.
    """
    address = address_of(remote)
    require("grpc", extra="connect", needed_for="a Spark Connect session")
    require_no_classic()
    _reach(remote, address)
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # pyspark chooses its functions by this name for the whole process; its own builder sets it as well.
    before = os.environ.get("SPARK_CONNECT_MODE_ENABLED")
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    failure = ""
    try:
        made: SparkSession = ConnectSession.builder.remote(remote).create()
        made.conf.get("spark.sql.session.timeZone", None)  # the first call: is anybody there?
    except Exception as error:
        failure = _first_line(error)
    if failure:  # raised out here, so that the channel's own long story is not kept with it
        if before is None:
            del os.environ["SPARK_CONNECT_MODE_ENABLED"]
        raise UsageError(
            f"no Spark Connect server answers at {address} ({failure}). "
            "Check address, port and token, and that the server runs"
        )
    set_confs(made, confs)
    return made


def _reach(remote: str, address: str) -> None:
    """Shake hands with the server, once and in short: pyspark itself would try for ten minutes.

    Raises:
        UsageError: nobody listens, or who does speaks otherwise.
    """
    import socket

    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    host, _, port = address.rpartition(":")
    try:
        if not any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
            socket.create_connection((host, int(port)), _REACH_SECONDS).close()
        channel = DefaultChannelBuilder(remote).toChannel()
        try:
            grpc.channel_ready_future(channel).result(_REACH_SECONDS)
        finally:
            channel.close()
    except OSError as error:
        raise UsageError(
            f"no Spark Connect server answers at {address} ({error.strerror or error}). "
            "Check address and port, and that the server runs"
        ) from None
    except grpc.FutureTimeoutError:
        raise UsageError(
            f"what listens at {address} does not speak as a Spark Connect server does. Check the port, and whether "
            "it wants TLS (a token or use_ssl=true in the address) or does not"
        ) from None


def set_confs(spark: SparkSession, confs: Mapping[str, str]) -> None:
    """Set what can be set; confs that are fixed when an engine starts stay as they are there, without a word."""
    import warnings

    for key, value in confs.items():
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")  # Connect warns where the classic session raises
            spark.conf.set(key, value)


def require_no_classic() -> None:
    """A process holds classic sessions or Connect's, since pyspark's functions are of one kind at a time.

    Raises:
        UsageError: there is a classic session.
    """
    core = sys.modules.get("pyspark.core.context")
    context = getattr(core, "SparkContext", None)
    if context is not None and context._active_spark_context is not None and "SPARK_LOCAL_REMOTE" not in os.environ:
        raise UsageError(
            "remote: this process has a classic Spark session already, and pyspark can't hold both kinds. "
            "Stop that one first (spark.stop()), or leave remote out"
        )


def _first_line(error: Exception) -> str:
    """What failed, in a few words; a gRPC error's own text has an address and a dump of its state in it."""
    code = getattr(error, "code", None)
    with contextlib.suppress(Exception):
        if callable(code):
            return str(code().name)
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:120]
