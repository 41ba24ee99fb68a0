"""What errors of an object store mean to the one who runs a lake: fact and cure, no traceback, no secret."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from burler.errors import BurlerError, MissingExtra, StorageError, UsageError
from burler.storage.base import Conflict
from burler.storage.faults import is_about_options, is_forbidden, open_filesystem, said

OPTIONS = "--lake-options"
"""What errors call the options for the library that reaches the store."""
_RIGHTS = (
    "Do the credentials hold, and may they list, read, write and delete here? They come from "
    f"{OPTIONS} or the environment."
)
_NO_BUCKET = "Is the name of the bucket right? burler makes none."
_NETWORK = "Is the store's address right, and reachable from here? Then run again: no file is there in part."
_UNKNOWN = re.compile(r"unexpected keyword argument '([^']{1,100})'")
_CREDENTIALS = ("credential", "clientauthentication", "tokenretrieval", "refresherror", "defaultcredentials")


@contextlib.contextmanager
def faults(place: str, doing: str, *, at_start: bool = False, missing_is_an_answer: bool = False) -> Iterator[None]:
    """Errors of a store as burler's own. "The name is taken" and Conflict go through: they are answers.

    Args:
        place: the URL that they name.
        doing: what could not be done: "read", "written".
        at_start: nothing has been done so far: what is wrong is a wrong command.

    Raises:
        UsageError: at the start, the place or the credentials are wrong. StorageError: the store fails, or gives no
            answer; credentials may end in the middle of a run.
    """
    try:
        yield
    except (BurlerError, Conflict, FileExistsError):
        raise
    except Exception as error:  # stores have errors of their own
        if missing_is_an_answer and isinstance(error, FileNotFoundError):
            raise
        raise meaning(error, f"{place} can't be {doing}", at_start=at_start) from None


def meaning(error: BaseException, text: str, *, at_start: bool = False) -> BurlerError:
    """One error as burler's own; ``text`` says what could not be done."""
    unknown = _UNKNOWN.search(said(error))
    if unknown:
        return UsageError(f"{OPTIONS}: the store's library does not know '{unknown[1]}'. Is it spelled right?")
    text = f"{text}: {said(error)}."
    if at_start and is_about_options(error):
        return UsageError(f"{text}\n  Are URL and options right ({OPTIONS})?")
    wrong = UsageError if at_start else StorageError
    if is_no_bucket(error) or isinstance(error, FileNotFoundError):
        return wrong(f"{text}\n  {_NO_BUCKET}")
    if is_forbidden(error) or _is_about_credentials(error):
        return wrong(f"{text}\n  {_RIGHTS}")
    return StorageError(f"{text}\n  {_NETWORK}")


def is_no_bucket(error: BaseException) -> bool:
    """Whether the bucket itself is not there."""
    return any(s3_code(one) in ("NoSuchBucket", "ContainerNotFound") for one in (error, error.__cause__))


def s3_code(error: BaseException | None) -> str:
    """What a store calls an error: ``NoSuchBucket``; empty where it says nothing of the kind."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return str(response.get("Error", {}).get("Code", ""))
    return str(getattr(error, "error_code", "") or "")


def _is_about_credentials(error: BaseException) -> bool:
    names = " ".join(kind.__name__ for kind in type(error).__mro__).lower()
    return any(word in names for word in _CREDENTIALS)


def filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """fsspec's store of a URL, of our own (libraries share theirs, with all that is set on them), and the path in it.

    Raises:
        MissingExtra, UsageError, StorageError: see ``open_store``.
    """
    scheme = url.partition("://")[0].lower()
    given = {**options, "skip_instance_cache": True}
    try:
        return open_filesystem(
            url, given, needed_for=f"a lake on {scheme}://", name=f"the lake {url}", options_name=OPTIONS
        )
    except MissingExtra:
        raise
    except BurlerError as error:
        text = str(error).replace("batch_config.storage.options", OPTIONS)
        kind = StorageError if isinstance(error, StorageError) else UsageError
        raise kind(text) from None
