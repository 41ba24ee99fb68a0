"""The Spark session that burler works in: whose it is, which kind, and the confs that it needs.

A session that the caller has is used as it is, never stopped, and has its own confs back when a job of burler's ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import UsageError
from burler.extras import require
from burler.spark import jvm
from burler.spark.confs import JOB_CONFS
from burler.spark.launch import keep_sparks_errors_single, launched, make_sources_known, users_confs
from burler.spark.remote import (
    SAIL,
    address_of,
    capabilities,
    connect,
    is_connect,
    require_no_classic,
    set_confs,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_NEEDED_FOR = "burler.spark"
_GIB = 1 << 30


def session(
    app_name: str = "burler",
    conf: Mapping[str, Any] | None = None,
    master: str | None = None,
    *,
    remote: str | None = None,
) -> SparkSession:
    """The active Spark session, or a new one set up for burler.

    Args:
        app_name: shown in Spark's own logs and user interface.
        conf: Spark confs; each one given here wins over burler's, as those in spark-defaults.conf do.
        master: ``local[2]``, ``local-cluster[2,1,1024]``, ``spark://...``. Left out: what ``conf``, spark-defaults.conf
            or MASTER says, else all cores of this machine.
        remote: a Spark Connect session instead: ``sc://host:port`` on a server that is there, ``local[2]`` on one in
            this process, ``sail`` on a Sail server that burler starts. Left out: what ``conf`` (``spark.remote``) or
            SPARK_REMOTE says.

    Raises:
        MissingExtra: pyspark, or what ``remote`` needs beside it, is not installed.
        UsageError: no Java 17 or later, or its JVM did not start; no server at ``remote``; master and remote both; or
            this process has a session of the other kind.
    """
    require("pyspark.sql", extra="spark", needed_for=_NEEDED_FOR)
    own = {key: str(value) for key, value in (conf or {}).items()}
    master, remote = _wanted(master, remote, own)
    active = existing_session()
    if active is not None:
        _check_kind(active, remote)
        set_confs(active, own)  # a static conf of a running session stays as it is
        return active
    own.pop("spark.remote", None)
    if remote is not None:
        made = _remote_session(remote, app_name, own)
    else:
        made = _classic({"spark.app.name": app_name, **own}, master)
    make_sources_known(made)
    keep_sparks_errors_single()
    return made


def existing_session() -> SparkSession | None:
    """The session of this process, if there is one, of whichever kind; nothing is started."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    active: SparkSession | None = SparkSession.getActiveSession()
    if active is None:  # sessions are a thread's own; another thread of this process may have one
        module = sys.modules.get("pyspark.sql.connect.session")
        active = module.SparkSession._get_default_session() if module is not None else None
    core = sys.modules.get("pyspark.core.context")
    if active is None and core is not None and core.SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()
    return active


def default_confs(master: str) -> dict[str, str]:
    """burler's confs for a master, before the user's."""
    confs = {
        **JOB_CONFS,
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",  # v2 leaves partial appends
        # A plan shows a source's options but for those named here. Spark's own value, then those that hold secrets.
        "spark.sql.redaction.options.regex": "(?i)url|config|state|catalog|exec",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.memory": f"{driver_memory_mib()}m",
    }
    if master.startswith("local"):
        confs |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * _local_cores(master)),
        }
    return confs


def driver_memory_mib() -> int:
    """A quarter of the memory this process may use, at least 1 GiB and at most 8 GiB, in MiB."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # "max" (no limit), or no cgroup v2
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(max(total // 4, _GIB), 8 * _GIB) >> 20


# ---- making sessions ----------------------------------------------------------------------------------------------


def _wanted(master: str | None, remote: str | None, own: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Master and remote as they were asked for: by arguments, else by ``conf``, else by the environment."""
    if master is not None and master.startswith("sc://"):
        master, remote = None, remote or master
    if master is not None and remote is not None:
        raise UsageError("master and remote are both given: a session is of one kind. Leave one of them out")
    if master is None and remote is None:
        remote = own.get("spark.remote") or (None if "spark.master" in own else os.environ.get("SPARK_REMOTE"))
    return master, remote or None


def _check_kind(active: SparkSession, wanted: str | None) -> None:
    """A session that is there serves, unless another Connect server was asked for by its address.

    Raises:
        UsageError: it does not do what was asked for.
    """
    if wanted is None:
        return
    if not is_connect(active):
        require_no_classic()
    elif wanted == SAIL and capabilities(active).kind != "sail":
        raise UsageError("remote: this process has another Connect session already. Stop it first, or leave remote out")
    elif wanted.startswith("sc://"):
        there = getattr(getattr(active.client, "_builder", None), "endpoint", None)
        if there is not None and there != address_of(wanted):
            raise UsageError(
                f"remote: this process has a session on {there} already, not on {address_of(wanted)}. "
                "Stop it first, or leave remote out"
            )


def _classic(own: Mapping[str, str], master: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    # A Connect session of this process that was stopped leaves it behind, and pyspark would look for its server.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    users = users_confs()
    chosen = master or own.get("spark.master") or users.get("spark.master") or os.environ.get("MASTER") or "local[*]"
    _check_master(chosen)
    confs = {**default_confs(chosen), **users, **own, "spark.master": chosen}
    with launched(confs, local=chosen.startswith("local")):
        if not jvm.is_ours():
            confs = _less_given(confs, {*own, *(["spark.master"] if master else [])})
        made: SparkSession = _configured(SparkSession.builder, confs).getOrCreate()
        return made


def _check_master(master: str) -> None:
    """Before Java starts, which would end with Spark's stack trace.

    Raises:
        UsageError: a word that is no master. (Whatever has ``://`` in it is left to Spark: plug-ins bring their own.)
    """
    if "://" not in master and not re.match(r"(local(-cluster)?(\[.+\])?|yarn)\Z", master):
        raise UsageError(
            f"there is no Spark master '{master}'. Masters: local, local[4], local[*], yarn, spark://host:7077, "
            "k8s://https://host:6443; for a Connect server: remote, sc://host:15002"
        )


def _less_given(confs: Mapping[str, str], wanted: set[str]) -> dict[str, str]:
    """Without what the JVM of another program (spark-submit, a notebook) was started with: the user's confs."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    given = SparkConf()
    return {key: value for key, value in confs.items() if key in wanted or not given.contains(key)}


def _remote_session(wanted: str, app_name: str, own: Mapping[str, str]) -> SparkSession:
    if wanted == SAIL:
        from burler.spark import sail

        require_no_classic()
        return connect(sail.server(), {**JOB_CONFS, **own})
    if wanted.startswith("local"):
        return _connect_here(wanted, {"spark.app.name": app_name, **own})
    return connect(wanted, {**JOB_CONFS, **own})


def _connect_here(master: str, own: Mapping[str, str]) -> SparkSession:
    """A Connect session whose server is Spark in a JVM of this process, as pyspark's own ``remote("local[2]")``.

    pyspark's takes the one fixed port, so a second process could have none; here the system chooses the port.
    """
    require("grpc", extra="connect", needed_for="a Spark Connect session")
    require_no_classic()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    token = os.environ.setdefault("SPARK_CONNECT_AUTHENTICATE_TOKEN", secrets.token_hex(16))
    users = users_confs()
    plugins = [one for one in (own.get("spark.plugins") or users.get("spark.plugins"), _CONNECT_PLUGIN) if one]
    confs = {
        **default_confs(master),
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
        **users,
        **own,
        "spark.master": master,
        "spark.plugins": ",".join(plugins),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
    }
    with launched(confs, local=True):
        context = SparkContext.getOrCreate(SparkConf().setAll(list(confs.items())))
        SparkSession(context)
    service = getattr(context._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    port = getattr(service, "MODULE$").localPort()
    os.environ["SPARK_LOCAL_REMOTE"] = "1"  # by this pyspark knows that stop() of the Connect session ends the server
    # What the server was started with its sessions have; what is fixed then it would refuse, with a page of Java.
    given = context.getConf()
    more = {key: value for key, value in own.items() if given.get(key) != value}
    return connect(f"sc://localhost:{port}", more)  # to an address of another spelling pyspark would speak TLS


_CONNECT_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def _configured(builder: Any, confs: Mapping[str, str]) -> Any:
    for key, value in confs.items():
        builder = builder.config(key, value)
    return builder


def _local_cores(master: str) -> int:
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master)
    if cluster is not None:
        return int(cluster.group(1)) * int(cluster.group(2))
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    slots = match.group(1) if match else None
    if slots == "*" or match is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(slots or 1)
