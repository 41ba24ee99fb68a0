"""What the manifest of a BATCH may name: one rule for all who read such messages.

Whoever writes messages names files and hosts in them, and whoever reads the messages opens these with rights of its
own: its user's files, its network, its keys. So what a manifest names is looked at before it is opened: with links and
redirects followed, and again at each step of them.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.batch.storage import WORDS
from burler.errors import ConfigError
from burler.http.origins import as_sent, begins, climbs, is_web, same_origin
from burler.storage.location import folder_of
from burler.storage.web import Gate, Refused

if TYPE_CHECKING:
    import requests

VARIABLE = "BURLER_ALLOW"
"""The environment variable that says what ``--allow`` says: URLs with blanks between them, or a list in JSON."""

_SYSTEM = ("/proc", "/sys", "/dev")
"""Where an operating system shows what processes and devices hold: environments, memory, open files."""
_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})
"""Where clouds give credentials to a machine, beside the link-local 169.254.169.254."""
_SAME = {"s3a": "s3", "gcs": "gs"}


@dataclass(frozen=True, slots=True)
class Allowed(Gate):
    """What manifests may name; see ``Gate``.

    Attributes:
        prefixes: URLs of folders, below which everything may be read and nothing else. None: nobody has said; then
            all but what a machine keeps to itself (``/proc``, ``/sys``, ``/dev``; addresses of its own and link-local
            ones).
    """

    prefixes: tuple[str, ...] | None = None

    @classmethod
    def of(cls, given: Allowed | Iterable[str] | str | None) -> Allowed:
        """From what ``--allow`` says, or the environment variable ``BURLER_ALLOW`` where it says nothing.

        Args:
            given: URLs or paths of folders.

        Raises:
            ConfigError: one that can't be.
        """
        if isinstance(given, Allowed):
            return given
        if given is not None:
            urls, name = [given] if isinstance(given, str) else list(given), "--allow"
        elif said := os.environ.get(VARIABLE, "").strip():
            urls, name = _listed(said), VARIABLE
        else:
            return cls()
        return cls(tuple(_prefix(url, name) for url in urls))

    def path(self, path: Path) -> Path:
        """The file: with links followed, so that what is opened is what was looked at."""
        real = os.path.realpath(path)
        # As it is written, without steps upwards; links in it stay.
        plain = "/" + os.path.abspath(path).lstrip("/")  # noqa: PTH100  # resolve() would follow them
        if self.prefixes is not None:
            folders = [os.path.realpath(one) for one in self.prefixes if "://" not in one]
            if not any(Path(real).is_relative_to(folder) for folder in folders):
                raise self._outside()
        elif any(Path(one).is_relative_to(folder) for one in (real, plain) for folder in _SYSTEM):
            raise Refused(f"it lies in one of {', '.join(_SYSTEM)}", _cure(str(path.parent)))
        return Path(real)

    def web(self, url: str) -> None:
        """See ``Gate``."""
        parts = as_sent(url)
        if self.prefixes is not None:
            if climbs(parts.path) or not any(begins(parts, as_sent(one)) for one in self.prefixes if is_web(one)):
                raise self._outside()
        elif any(map(is_inner, _addresses(parts.hostname or ""))):
            raise _inner(url)

    def store(self, url: str, options: Mapping[str, Any]) -> None:
        """Look at a URL, and whether its host may see the options."""
        if "://" not in url or "::" in url:  # to fsspec a path of this machine, and one store inside of another
            raise Refused("it is no plain URL", "A manifest has whole URLs, such as s3://bucket/folder/x.jsonl.")
        if self.prefixes is not None:
            if not any(_store_begins(url, one) for one in self.prefixes):
                raise self._outside()
        elif options and _names_host(url):
            raise _no_home("storage options", url)

    def opened_store(self, store: Any) -> None:
        """Refuse this machine's disk, under another name than ``file:``."""
        from fsspec.implementations.local import LocalFileSystem

        if isinstance(store, LocalFileSystem):
            raise Refused("it is a file of this machine under another name", "Name it by file:///folder/x.jsonl.")

    def is_home(self, url: str, first: str) -> bool:
        """Whether it is of the origin of the first http(s) URL of ``--allow``. A host that a message alone names sees
        no headers."""
        return same_origin(url, next(filter(is_web, self.prefixes or ()), ""))

    def check_headers(self, url: str) -> None:
        """See ``Gate``."""
        if not any(map(is_web, self.prefixes or ())):
            raise _no_home("headers of the storage options", url)

    def guard(self, session: requests.Session) -> None:
        """Have a session look at who answers, before it asks: a name may lead elsewhere between look-up and connection.
        Behind a proxy nobody can see that."""
        if self.prefixes is None:
            for scheme in ("http://", "https://"):
                session.mount(scheme, _guarded_adapter()())

    def _outside(self) -> Refused:
        named = ", ".join(self.prefixes or ()) or "nothing"
        return Refused("it lies below nothing that --allow names", f"Allowed is {named}.")


# ---- prefixes ------------------------------------------------------------------------------------------------


def _listed(text: str) -> list[str]:
    if not text.startswith("["):
        return text.split()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ConfigError(f"{VARIABLE} must be URLs with blanks between them, or a JSON list of them.")
    return found


def _prefix(url: str, name: str) -> str:
    """A path of this machine, or a URL as it was given.

    Raises:
        ConfigError: neither.
    """
    folder = folder_of(url, dataclasses.replace(WORDS, place=name))
    if folder is not None:
        return os.path.abspath(folder)  # noqa: PTH100  # resolve() would follow links
    head, _, rest = url.partition("://")
    parts = as_sent(url) if is_web(url) else None
    if parts is not None and (not parts.hostname or "@" in parts.netloc):
        fact = "names no host" if not parts.hostname else "has a user in it"
    elif not rest.strip("/") or climbs(rest) or any(sign in rest for sign in ("?", "#", "::")):
        fact = "is no URL of a folder"
    else:
        return f"{head.lower()}://{rest}"
    raise ConfigError(
        f"{name}: '{url.partition('?')[0].rpartition('@')[2]:.200}' {fact}. Give a folder, https://host/folder, or "
        "s3://bucket/folder."
    )


def _store_begins(url: str, prefix: str) -> bool:
    scheme, _, rest = url.partition("?")[0].partition("://")
    other, mark, folder = prefix.partition("://")
    if not mark or _SAME.get(scheme.lower(), scheme.lower()) != _SAME.get(other, other) or climbs(rest):
        return False
    parts, wanted = rest.split("/"), folder.rstrip("/").split("/")
    return parts[: len(wanted)] == wanted


def _cure(prefix: str) -> str:
    return f"If it is to be read all the same: --allow {prefix} (in Python: allow=[...])."


def _root_of(url: str) -> str:
    """Scheme and host of a URL, without a user."""
    scheme, _, rest = url.partition("://")
    host = rest.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    return f"{scheme.lower()}://{host}/"


# ---- hosts ---------------------------------------------------------------------------------------------------


def is_inner(address: str) -> bool:
    """Whether an IP address is one of this machine's own, or one that only this machine's link knows."""
    plain = ipaddress.ip_address(address.partition("%")[0])
    one = getattr(plain, "ipv4_mapped", None) or plain
    if one.is_loopback or one.is_link_local or one.is_unspecified or str(one) in _METADATA:
        return True
    family = socket.AF_INET if one.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:  # no packet goes out
            probe.connect((str(one), 9))
            return ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == one
    except OSError:  # there is no way to it
        return False


def _addresses(host: str) -> Iterator[str]:
    """What a host's name stands for; nothing where nobody knows it: whoever asks it says so."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        return
    yield from (str(address[0]) for *_, address in found)


def _inner(url: str) -> Refused:
    where = _root_of(url)
    return Refused(f"{where} is this machine itself or a link-local address", _cure(where))


def _no_home(what: str, url: str) -> Refused:
    return Refused(
        f"the {what} would go to a host that the message alone names",
        f"If it may see them, name it: --allow {_root_of(url)} (in Python: allow=[...]). Else leave them out.",
    )


def _names_host(url: str) -> bool:
    """Whether a URL names the server that its store's library connects to, as sftp: does; s3: names a bucket."""
    try:
        from fsspec import get_filesystem_class

        kind = get_filesystem_class(url.partition("://")[0].lower())
    except (ImportError, ValueError):  # opening it says so
        return False
    return "host" in kind._get_kwargs_from_urls(url)


@functools.cache
def _guarded_adapter() -> Any:
    """A class for sessions of requests."""
    from requests.adapters import HTTPAdapter
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    def guarded(kind: Any) -> Any:
        class Connection(kind.ConnectionCls):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                if is_inner(self.sock.getpeername()[0]):
                    self.close()
                    raise _inner(f"{kind.scheme}://{self.host}/")

        class Pool(kind):  # type: ignore[misc]
            ConnectionCls = Connection

        return Pool

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *given: Any, **named: Any) -> None:
            super().init_poolmanager(*given, **named)
            self.poolmanager.pool_classes_by_scheme = {
                "http": guarded(HTTPConnectionPool),
                "https": guarded(HTTPSConnectionPool),
            }

    return Adapter
