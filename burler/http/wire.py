"""The ``requests.Session`` behind a client."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests


_AS_MANY_AS_ASK = 256  # more threads than a run has: a pool has no connections but those that were needed at once
_SERVERS = 16  # whose connections are kept


def make_session(pool_size: int | None) -> requests.Session:
    """A session that keeps up to ``pool_size`` connections to a server open (None: as many as there are threads that
    ask), follows no redirect and tries nothing again by itself, so that there is one place that does (``sending``)."""
    import requests
    from requests.adapters import HTTPAdapter

    class Session(requests.Session):
        burlers_own = True

        def get_redirect_target(self, resp: requests.Response) -> str | None:
            return None  # redirects are followed where it is known who may see credentials

    session = Session()
    session.headers.clear()
    adapter = HTTPAdapter(pool_connections=_SERVERS, pool_maxsize=pool_size or _AS_MANY_AS_ASK, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def with_cookies_of_its_own(session: requests.Session) -> requests.Session:
    """A session on the same connections for another account, whose cookies are others. One of the author's stays as it
    is: who made it knows what is in it."""
    if not is_ours(session):
        return session
    from requests.cookies import RequestsCookieJar

    other = copy.copy(session)
    other.cookies = RequestsCookieJar()
    return other


def is_ours(session: requests.Session) -> bool:
    """Whether a session is one of ``make_session``, which nobody else changes."""
    return getattr(session, "burlers_own", False)
