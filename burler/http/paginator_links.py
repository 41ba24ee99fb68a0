"""Paginators that follow URLs which the source gives: in a header, or in the body."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit, urlunsplit

from burler.errors import PagingError
from burler.http.misspelt import options_named
from burler.http.origins import PORTS, origin
from burler.http.paginator_parts import check_path, check_several, shown

if TYPE_CHECKING:
    from burler.http.reply import Reply
    from burler.http.request import Request

# RFC 8288: <target> and its parameters, whose values may be in quotes, with commas and semicolons inside. No part of it
# can match a text in two ways, so that a hostile header takes no longer than its length.
_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^\s=;,\"]+\s*(?:=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)")
_LINK_PARAM = re.compile(r";\s*([^\s=;,\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Following:
    """What paginators that follow URLs have in common.

    Attributes:
        allow_hosts: hosts (``files.example.com``, ``localhost:8080``) that a next URL may lead to beside the source
            itself. They are asked without credentials.
        keep_origin: take path and query of a next URL, and stay with the scheme, host and port of the request: for
            sources behind a proxy that name themselves wrongly.
        keep_params: params of the first request that next URLs lose, to be added where they are missing.
    """

    allow_hosts: Collection[str] = ()
    keep_origin: bool = False
    keep_params: Collection[str] = ()

    def first(self, request: Request) -> Request:
        """The request as it is."""
        return request

    def _check(self, who: str) -> None:
        check_several(who, allow_hosts=self.allow_hosts, keep_params=self.keep_params)

    def _follow(self, target: Any, request: Request, reply: Reply) -> Request:
        if not isinstance(target, str):
            raise PagingError(f"the next URL should be text; the reply has {shown(target)} there.")
        url = next_url(target, reply, self.allow_hosts, keep_origin=self.keep_origin)
        return request.replace(path=url, params=self._kept(request, url) or None)

    def _kept(self, request: Request, url: str) -> dict[str, Any]:
        """Params to add to a next URL: of the request, or of its own URL where that was a next one already."""
        if not self.keep_params:
            return {}
        before = {**_query(request.path), **(request.params or {})}
        there = _query(url)
        return {name: value for name, value in before.items() if name in self.keep_params and name not in there}


def _query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


@options_named
@dataclass(frozen=True, slots=True)
class LinkHeader(_Following):
    """The ``Link`` header of the reply says where it goes on, as GitHub's does: ``<URL>; rel="next"`` (RFC 8288).

    Attributes:
        rel: the relation; a link may have several, in any case.
    """

    rel: str = "next"

    def __post_init__(self) -> None:
        if not isinstance(self.rel, str) or not self.rel.strip():
            raise ValueError(f"LinkHeader: rel={self.rel!r:.60} must be the name of a relation, such as 'next'.")
        self._check("LinkHeader")

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request for the linked page; None if no link has the relation.

        Raises:
            PagingError: the link leads to another host, or is none.
        """
        for target, names in links_of(reply.headers.get("Link") or ""):
            if self.rel.lower() in names:
                return self._follow(target, request, reply)
        return None


def links_of(header: str) -> Iterator[tuple[str, list[str]]]:
    """The links of a header: target and relations, in small letters."""
    for found in _LINK.finditer(header):
        for name, quoted, plain in _LINK_PARAM.findall(found[2]):
            if name.lower() == "rel":
                yield found[1].strip(), (quoted or plain).lower().split()
                break  # a second rel does not count (RFC 8288, 3.3)


@options_named
@dataclass(frozen=True, slots=True)
class NextUrl(_Following):
    """The body has the URL of the next page: ``NextUrl("paging.next")``. null, "" or nothing there is the end.

    Attributes:
        path: where it stands; see ``Reply.find``.
    """

    path: str | tuple[str, ...]

    def __post_init__(self) -> None:
        check_path(self.path, "NextUrl")
        self._check("NextUrl")

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request for that URL.

        Raises:
            PagingError: it leads to another host, or is none.
        """
        target = reply.find(self.path)
        return None if target is None or target is False or target == "" else self._follow(target, request, reply)


def next_url(target: str, reply: Reply, allow_hosts: Collection[str] = (), *, keep_origin: bool = False) -> str:
    """A next URL, whole; relative ones go on from where the reply came from. A user and a password in it are left out.

    Raises:
        PagingError: it is no http(s) URL; it leads to another scheme, host or port, and ``allow_hosts`` has it not.
    """
    try:
        parts = urlsplit(urldefrag(urljoin(reply.url, target.strip())).url)
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        home = urlsplit(reply.origin or reply.url)
        there, here = origin(parts), origin(home)
    except ValueError:  # whose words may quote a user and a password
        raise PagingError(f"the next URL {shown(target)} is none.") from None
    if not (here[0] or there[0] or there[1]):
        return urlunsplit(parts)  # an author's own request knows what stands before a path
    if there[0] not in PORTS or not there[1]:
        raise PagingError(f"the next URL {shown(target)} is no http or https URL.")
    if there == here:
        return urlunsplit(parts)
    if keep_origin:
        return urlunsplit((home.scheme, home.netloc.rpartition("@")[2], parts.path, parts.query, ""))
    hosts = {name.lower() for name in allow_hosts}
    named = there[1] in hosts and there[2] in (PORTS[there[0]], here[2])
    if (named or f"{there[1]}:{there[2]}" in hosts) and (there[0] == "https" or here[0] != "https"):
        return urlunsplit(parts)
    source = f"the source is {here[0]}://{here[1]}:{here[2]}" if here[0] else "the source has no base_url"
    raise PagingError(
        f"the next URL leads to {there[0]}://{there[1]}:{there[2]}, {source}. "
        "If that is right, say allow_hosts=[...] (no credentials go there); if it is the same source behind a proxy, "
        "keep_origin=True (both of LinkHeader and NextUrl)."
    )
