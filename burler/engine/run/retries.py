"""Further tries: what is done before a sync function is called once more (``retry_sync_on``)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from burler.declare.spec import Retry, StreamSpec
from burler.engine.session import Session
from burler.errors import StreamError
from burler.logs import short

logger = logging.getLogger(__name__)

_LOGGED = 10  # of a stream, one by one


def is_retried(spec: StreamSpec, error: BaseException, retries: int) -> bool:
    """Whether what raised ``error`` is called once more, after so many further tries."""
    retry = spec.retry
    return retry is not None and isinstance(error, retry.on) and retries < retry.most


def note(spec: StreamSpec, where: str, error: BaseException, number: int, noted: Counter[str]) -> None:
    """A warning for each of the first further tries, so that a run that takes long says why; ``noted`` counts them."""
    assert spec.retry is not None
    name = spec.tap_stream_id
    noted[name] += 1
    shown = f", {where}" if where else ""
    text = "stream '%s'%s: %s; begins anew, retry %d of %d"
    level = logging.WARNING if noted[name] <= _LOGGED else logging.DEBUG
    logger.log(level, text, name, shown, short(error), number, spec.retry.most)
    if noted[name] == _LOGGED:
        logger.warning("stream '%s': further retries are not told one by one", name)


def set_up(
    session: Session,
    spec: StreamSpec,
    given: Mapping[str, Callable[[], Any]],
    error: BaseException,
    number: int,
    run: Callable[..., Any] = lambda step, *args, **named: step(*args, **named),
) -> Any:
    """Call the author's ``setup_retry``; the bookmark that it gives, None for the original one.

    Args:
        number: of the retry, from 1 on.
        run: runs it in the function's own context.

    Raises:
        StreamError: it failed; its cause is what it raised.
    """
    retry: Retry | None = spec.retry
    if retry is None or retry.setup is None:
        return None
    asked = {"parent": _none, "partition": _none, **given, "error": lambda: error, "retry": lambda: number}
    name = spec.tap_stream_id
    try:
        return run(session.invoke, retry.setup, asked, stream=name)
    except (Exception, SystemExit) as failed:
        fact = f"stream '{name}': its setup_retry ({retry.setup.place}) failed: {short(failed)}"
        raise StreamError(name, fact) from failed


def _none() -> None:
    return None
