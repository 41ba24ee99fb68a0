"""What errors of remote stores mean, as burler's errors: fact and cure, no traceback, no secret."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from burler.config.watched import clean
from burler.errors import BurlerError, ConfigError, StorageError, UsageError
from burler.extras import require, require_store, store_package
from burler.files.store_errors import fact

AGAIN = "Run the tap again with the last STATE that its target has stored."
"""A state that the tap itself has kept (``--out-file``) may be past the file that can't be read."""
_NETWORK = "Is the endpoint right, and reachable from here?"
_ONCE_MORE = "Run again: no message names this file."
_RIGHTS = (
    "Do the credentials hold, and may they write, read and delete here? They come from batch_config.storage.options or "
    "the environment."
)
_OPTIONS = "batch_config.storage.options"
_UNKNOWN = re.compile(r"unexpected keyword argument '([^']{1,100})'")
_NAMED_SO = frozenset({"ProfileNotFound", "UnknownSignatureVersionError"})  # errors of botocore that have no kind


def said(error: BaseException) -> str:
    """What a store said, in few words and without secrets."""
    return clean(fact(error)).replace("\n", " ")[:300].rstrip(".")


@contextlib.contextmanager
def faults(place: str, doing: str, *, at_start: bool = False, options_name: str = _OPTIONS) -> Iterator[None]:
    """Errors of a store as burler's own. FileExistsError goes through: it is an answer.

    Args:
        place: the URL that they name.
        doing: what could not be done: "written", "looked at".
        at_start: nothing has been read so far: what is wrong is a wrong command or config.
        options_name: what errors call the options of the store.

    Raises:
        UsageError, StorageError: so. ConfigError: the store does not take its options.
    """
    try:
        yield
    except (BurlerError, FileExistsError):
        raise
    except Exception as error:  # stores have errors of their own
        if at_start and is_about_options(error):
            raise _wrong_options(error, f"{place} can't be {doing}", place, options_name) from None
        raise _meaning(error, f"{place} can't be {doing}: {said(error)}.", at_start) from None


def is_about_options(error: BaseException) -> bool:
    """Whether a store's library can't use what it was given: a mistake in a config, where the store was not even asked.
    Such libraries look at their options when they connect, and not all of them raise errors of their own."""
    if isinstance(error, OSError | UnicodeError | json.JSONDecodeError):  # a connection, or an answer
        return False
    return isinstance(error, TypeError | ValueError | AttributeError | KeyError) or type(error).__name__ in _NAMED_SO


def _wrong_options(error: Exception, text: str, url: str, options_name: str) -> ConfigError:
    unknown = _UNKNOWN.search(said(error))
    if unknown is None:
        return ConfigError(f"{text}: {said(error)}.\n  Are URL and options right ({options_name})?")
    library = store_package(url)[0] or f"{url.partition('://')[0].lower()}://"
    return ConfigError(f"{options_name}: {library} does not know '{unknown[1]}'. Is it spelled right?")


def _meaning(error: Exception, text: str, at_start: bool) -> BurlerError:
    wrong = UsageError if at_start else StorageError
    if isinstance(error, FileNotFoundError):
        return wrong(f"{text}\n  Is the name of the bucket right? burler makes none.")
    if is_forbidden(error) or _is_about_credentials(error):
        return wrong(f"{text}\n  {_RIGHTS}")
    return StorageError(f"{text}\n  {_NETWORK}" if at_start else f"{text}\n  {_NETWORK} {_ONCE_MORE}")


def is_forbidden(error: BaseException) -> bool:
    """Whether a store does not let these credentials do that (403); libraries say it each in their own way."""
    codes = {getattr(error, name, None) for name in ("status", "status_code", "code")}
    return isinstance(error, PermissionError) or bool(codes & {403, "403"}) or str(error).startswith("Forbidden")


def _is_about_credentials(error: BaseException) -> bool:
    """Whether a store's library has found no credentials, or none that hold; each calls it by a name of its own."""
    names = " ".join(kind.__name__ for kind in type(error).__mro__).lower()
    return any(word in names for word in ("credential", "clientauthentication", "tokenretrieval", "refresherror"))


def _copied(options: Any) -> Any:
    """Options that a library may change without changing those that were given; botocore does."""
    if isinstance(options, Mapping):
        return {name: _copied(value) for name, value in options.items()}
    return [_copied(value) for value in options] if isinstance(options, list) else options


def open_filesystem(
    url: str, options: Mapping[str, Any], *, needed_for: str, name: str, options_name: str = _OPTIONS
) -> tuple[Any, str]:
    """fsspec's store of a URL, and the path in it.

    Args:
        name: what errors call the URL: ``batch_config.storage.root``.
        options_name: and the options.

    Raises:
        MissingExtra: fsspec or the store's package is not installed. ConfigError: no store has such URLs, or it does
        not take the options.
    """
    scheme = url.partition("://")[0].lower()
    require_store(url, needed_for=needed_for)
    core = require("fsspec.core", extra="lake", needed_for=needed_for)
    try:
        store, path = core.url_to_fs(url, **_copied(options))
    except ImportError as error:  # fsspec says which package the store needs
        raise ConfigError(f"{name}: {scheme}:// can't be opened: {said(error)}.") from None
    except Exception as error:  # some stores connect at once
        if is_about_options(error):
            raise _wrong_options(error, f"{name}: {scheme}:// can't be opened", url, options_name) from None
        raise _meaning(error, f"{name}: {scheme}:// can't be opened: {said(error)}.", True) from None
    return store, str(path)
