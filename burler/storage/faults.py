"""What errors of stores mean, as burler's errors: fact and cure, no traceback, no secret."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from burler.config.secrets import masked
from burler.errors import BurlerError, StorageError, UsageError
from burler.extras import require, require_store, store_package
from burler.storage.base import Conflict
from burler.storage.location import Words, shown
from burler.suggest import did_you_mean

_UNKNOWN = re.compile(r"unexpected keyword argument '([^']{1,100})'")
_NAMED_SO = frozenset({"ProfileNotFound", "UnknownSignatureVersionError"})  # errors of botocore that have no kind
_CREDENTIALS = ("credential", "clientauthentication", "tokenretrieval", "refresherror")
_GONE = (404, 410)
_ASKED_IN_VAIN = ("aiohttp", "requests", "urllib3", "ftplib")


def is_gone(error: BaseException) -> bool:
    """Whether a ``FileNotFoundError`` of a store says that there is no such file. fsspec's web and FTP stores say the
    same of a server that is broken or lets nobody in; what it said stands in the cause."""
    cause = error.__cause__
    if cause is None:
        return True
    status = getattr(cause, "status", None)
    if isinstance(status, int):
        return status in _GONE
    if isinstance(cause, FileNotFoundError):
        return is_gone(cause)
    if type(cause).__name__ == "error_perm":  # FTP's "550 no such file", and other things that may not be
        return str(cause).startswith("550")
    return not isinstance(cause, OSError | EOFError) and type(cause).__module__.partition(".")[0] not in _ASKED_IN_VAIN


def fact(error: BaseException) -> str:
    """What a store said, in few words."""
    if isinstance(error, FileNotFoundError) and not is_gone(error):
        error = error.__cause__ or error
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    status = getattr(error, "status", None)
    return shown(f"HTTP {status} {getattr(error, 'message', '')}".strip() if isinstance(status, int) else text)[:300]


def said(error: BaseException) -> str:
    """``fact`` within a sentence."""
    return masked(fact(error)).replace("\n", " ")[:300].rstrip(".")


@contextlib.contextmanager
def faults(
    place: str, doing: str, words: Words, *, at_start: bool = False, missing_is_an_answer: bool = False
) -> Iterator[None]:
    """Errors of a store as burler's own. "The name is taken" and Conflict go through: they are answers.

    Args:
        place: the URL that they name.
        doing: what could not be done: "read", "written".
        at_start: nothing has been done so far: what is wrong is a wrong command or config.

    Raises:
        UsageError: at the start, the place or the credentials are wrong, or the options (``words.wrong``).
        StorageError: the store fails, or gives no answer; credentials may end in the middle of a run.
    """
    try:
        yield
    except (BurlerError, Conflict, FileExistsError):
        raise
    except Exception as error:  # stores have errors of their own
        if missing_is_an_answer and isinstance(error, FileNotFoundError):
            raise
        raise _meaning(error, place, f"{place} can't be {doing}", words, at_start) from None


def _meaning(error: BaseException, url: str, text: str, words: Words, at_start: bool) -> BurlerError:
    unknown = _UNKNOWN.search(said(error))
    if unknown and is_about_options(error):
        library = store_package(url)[0] or f"{url.partition('://')[0].lower()}://"
        return words.wrong(f"{words.options}: {library} does not know '{unknown[1]}'. Is it spelled right?")
    text = f"{text}: {said(error)}."
    if at_start and is_about_options(error):
        return words.wrong(f"{text}\n  Are URL and options right ({words.options})?")
    wrong = UsageError if at_start else StorageError
    if is_no_bucket(error) or isinstance(error, FileNotFoundError):
        return wrong(f"{text}\n  Is the name of the bucket right? burler makes none.")
    if is_forbidden(error) or is_about_credentials(error):
        return wrong(
            f"{text}\n  Do the credentials hold, and may they list, read, write and delete here? They come from "
            f"{words.options} or the environment."
        )
    cure = "Is the store's address right, and reachable from here?"
    return StorageError(f"{text}\n  {cure}" if at_start else f"{text}\n  {cure} {words.again}")


def is_about_options(error: BaseException) -> bool:
    """Whether a store's library can't use what it was given: a mistake in a config, where the store was not even asked.
    Such libraries look at their options when they connect, and not all of them raise errors of their own."""
    if isinstance(error, OSError | UnicodeError | json.JSONDecodeError):  # a connection, or an answer
        return False
    return isinstance(error, TypeError | ValueError | AttributeError | KeyError) or type(error).__name__ in _NAMED_SO


def is_no_bucket(error: BaseException) -> bool:
    """Whether the bucket itself is not there."""
    return any(store_code(one) in ("NoSuchBucket", "ContainerNotFound") for one in (error, error.__cause__))


def store_code(error: BaseException | None) -> str:
    """What a store calls an error: ``NoSuchBucket``; empty where it says nothing of the kind."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return str(response.get("Error", {}).get("Code", ""))
    return str(getattr(error, "error_code", "") or "")


def is_forbidden(error: BaseException) -> bool:
    """Whether a store does not let these credentials do that (403); libraries say it each in their own way."""
    codes = {getattr(error, name, None) for name in ("status", "status_code", "code")}
    return isinstance(error, PermissionError) or bool(codes & {403, "403"}) or str(error).startswith("Forbidden")


def is_about_credentials(error: BaseException) -> bool:
    """Whether a store's library has found no credentials, or none that hold; each calls it by a name of its own."""
    names = " ".join(kind.__name__ for kind in type(error).__mro__).lower()
    return any(word in names for word in _CREDENTIALS)


def open_filesystem(url: str, options: Mapping[str, Any], words: Words, *, own: bool = False) -> tuple[Any, str]:
    """fsspec's store of a URL, and the path in it.

    Args:
        own: a store of our own: libraries share theirs, with all that is set on them.

    Raises:
        MissingExtra: fsspec or the store's package is not installed. ``words.wrong``: no store has such URLs, or it
            does not take the options. UsageError, StorageError: it connects at once, and that failed.
    """
    scheme = url.partition("://")[0].lower()
    needed_for = f"{words.use} on {scheme}://"
    require_store(url, needed_for=needed_for)
    core = require("fsspec.core", extra="lake", needed_for=needed_for)
    doing = f"{words.place}: {shown(url)} can't be opened"
    try:
        store, path = core.url_to_fs(url, **_copied(options), **({"skip_instance_cache": True} if own else {}))
    except ImportError as error:  # fsspec says which package the store needs
        raise words.wrong(f"{doing}: {said(error)}.") from None
    except Exception as error:
        fsspec = require("fsspec", extra="lake", needed_for=needed_for)
        known = (*fsspec.available_protocols(), *fsspec.registry)
        if isinstance(error, ValueError) and "::" not in url and scheme not in known:
            raise words.wrong(f"{words.place}: no store has {scheme}://.{did_you_mean(scheme, known)}") from None
        raise _meaning(error, url, doing, words, True) from None
    return store, str(path)


def _copied(options: Any) -> Any:
    """Options that a library may change without changing those that were given; botocore does."""
    if isinstance(options, Mapping):
        return {name: _copied(value) for name, value in options.items()}
    return [_copied(value) for value in options] if isinstance(options, list) else options
