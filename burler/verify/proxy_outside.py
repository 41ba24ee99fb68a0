"""How the proxy itself gets to the network: directly, or through a proxy that the environment names."""

from __future__ import annotations

import base64
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from burler.errors import UsageError
from burler.http.masking import mask_url

_CONNECT_SECONDS = 60.0
_MOST_HEAD = 65_536


@dataclass(frozen=True, slots=True)
class Outside:
    """The proxies for each scheme, and hosts that need none."""

    proxies: Mapping[str, SplitResult] = field(default_factory=dict, repr=False)
    direct: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Outside:
        """As an environment has it.

        Raises:
            UsageError: a proxy that we can't talk to.
        """
        proxies = {}
        for scheme in ("http", "https"):
            url = _value(environment, f"{scheme}_proxy") or _value(environment, "all_proxy")
            if url:
                proxies[scheme] = _proxy(url, scheme)
        return cls(proxies, _value(environment, "no_proxy"))

    def connect(self, url: str) -> tuple[socket.socket, str]:
        """A connection for an ``http://`` address, and what is asked for on it.

        Raises:
            OSError: nobody answers there.
        """
        parts = urlsplit(url)
        proxy = self._proxy_for("http", parts.hostname or "")
        if proxy is not None:
            return _dial(proxy.hostname or "", proxy.port or 80), url.partition("#")[0]
        whole = url.partition("#")[0].partition("://")[2]
        at = min((place for place in map(whole.find, "/?") if place >= 0), default=len(whole))
        target = whole[at:] if whole[at:].startswith("/") else "/" + whole[at:]
        return _dial(parts.hostname or "", parts.port or 80), target

    def headers(self, url: str) -> list[tuple[str, str]]:
        """What a proxy behind us wants to know."""
        proxy = self._proxy_for("http", urlsplit(url).hostname or "")
        return [] if proxy is None else _credentials(proxy)

    def tunnel(self, host: str, port: int) -> socket.socket:
        """A connection on which bytes go to a host as they are.

        Raises:
            OSError: there is none.
        """
        proxy = self._proxy_for("https", host)
        if proxy is None:
            return _dial(host, port)
        far = _dial(proxy.hostname or "", proxy.port or 80)
        try:
            name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            lines = [f"CONNECT {name} HTTP/1.1", f"Host: {name}"]
            lines += [f"{key}: {value}" for key, value in _credentials(proxy)]
            far.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            head = b""
            while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the other end
                byte = far.recv(1)
                head += byte
                if not byte or len(head) > _MOST_HEAD:
                    raise ConnectionError("the proxy of this machine gave no answer")
            status = head.split(None, 2)[1:2]
            if status != [b"200"]:
                raise ConnectionError(f"the proxy of this machine answered {b''.join(status).decode('latin-1')}")
        except BaseException:
            far.close()
            raise
        return far

    def _proxy_for(self, scheme: str, host: str) -> SplitResult | None:
        if _is_direct(host, self.direct):
            return None
        return self.proxies.get(scheme)


def _is_direct(host: str, listed: str) -> bool:
    """Whether ``no_proxy`` lists a host: by its name, that of a domain it is in, or ``*``."""
    host = host.lower()
    for name in listed.lower().split(","):
        name = name.strip().lstrip(".")
        if name and (name == "*" or host == name or host.endswith(f".{name}")):
            return True
    return False


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _proxy(url: str, scheme: str) -> SplitResult:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        good = parts.scheme == "http" and bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"the environment's {scheme}_proxy is {mask_url(url)}: requests can be watched through an http:// proxy "
            "alone. Unset it, or leave the rules of requests out (--ignore H)."
        )
    return parts


def _credentials(proxy: SplitResult) -> list[tuple[str, str]]:
    if not proxy.username:
        return []
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]


def _dial(host: str, port: int) -> socket.socket:
    sock = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
    sock.settimeout(None)  # how long a reply may take is for the tap to say
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
