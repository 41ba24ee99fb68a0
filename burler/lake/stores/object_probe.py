"""Whether an object store keeps conditions: found out by trying, with a hidden object."""

from __future__ import annotations

import contextlib
import io
import logging
import secrets
from dataclasses import dataclass

from burler.lake.stores.object_calls import ABSENT, Asking, Bucket, Verdict
from burler.lake.stores.object_faults import faults

logger = logging.getLogger("burler")

PROBE_FOLDER = "raw"
_CONTENT = b"burler looks whether this store keeps conditions"


@dataclass(frozen=True, slots=True)
class Held:
    """What a store was seen to keep.

    Attributes:
        writes: an object is created only where there is none, and replaced only while it has its tag.
        deletes: it is removed only while it has its tag.
    """

    writes: bool
    deletes: bool


def probed(bucket: Bucket, asking: Asking, folder: str, url: str) -> Held:
    """Try a bucket: create twice, replace with a wrong tag and with the right one, delete with a wrong tag.

    Args:
        folder: the key below which a hidden object is made, and removed again.
        url: what errors call the lake.

    Raises:
        UsageError: these credentials may not write there. StorageError: no answer.
    """
    if bucket.keeps_conditions is not None:
        return Held(bucket.keeps_conditions, bucket.keeps_conditions)
    key = f"{folder}/.burler-probe-{secrets.token_hex(8)}"
    with faults(url, "written", at_start=True):
        try:
            writes = _writes(bucket, asking, key, url)
            deletes = writes and _deletes(bucket, asking, key, url)
        finally:
            with contextlib.suppress(Exception):
                bucket.delete(key, condition=None)
    if writes and not deletes:
        logger.info("%s: this store removes files without a condition; it is looked at first.", url)
    return Held(writes, deletes)


def _writes(bucket: Bucket, asking: Asking, key: str, url: str) -> bool:
    def put(condition: str) -> Verdict | None:
        body = io.BytesIO(_CONTENT)
        return _outcome(bucket, asking, url, lambda: bucket.put(key, body, len(_CONTENT), mark="", condition=condition))

    if put(ABSENT) is Verdict.UNSUPPORTED or put(ABSENT) is not Verdict.REFUSED:
        return False
    if put(bucket.wrong_tag) not in (Verdict.REFUSED, Verdict.MISSING):
        return False
    return put(asking.ask(url, lambda: bucket.head(key)).tag) is None


def _deletes(bucket: Bucket, asking: Asking, key: str, url: str) -> bool:
    def delete() -> None:
        bucket.delete(key, condition=bucket.wrong_tag)

    return _outcome(bucket, asking, url, delete) is Verdict.REFUSED


def _outcome(bucket: Bucket, asking: Asking, url: str, act: object) -> Verdict | None:
    """How a call ended; None: it was done."""
    try:
        asking.ask(url, act)  # type: ignore[arg-type]
    except Exception as error:
        verdict = bucket.verdict(error)
        if verdict in (Verdict.REFUSED, Verdict.UNSUPPORTED, Verdict.MISSING):
            return verdict
        raise
    return None
