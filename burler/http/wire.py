"""The ``requests.Session`` behind a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests


def make_session(pool_size: int) -> requests.Session:
    """A session that keeps up to ``pool_size`` connections to a server open, follows no redirect and tries nothing
    again by itself, so that there is one place that does (``sending``)."""
    import requests
    from requests.adapters import HTTPAdapter

    class Session(requests.Session):
        burlers_own = True

        def get_redirect_target(self, resp: requests.Response) -> str | None:
            return None  # redirects are followed where it is known who may see credentials

    session = Session()
    session.headers.clear()
    adapter = HTTPAdapter(pool_connections=pool_size, pool_maxsize=pool_size, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def is_ours(session: requests.Session) -> bool:
    """Whether a session is one of ``make_session``, which nobody else changes."""
    return getattr(session, "burlers_own", False)
