"""Reading sources over HTTP: a client that waits, tries again, keeps limits and counts, on requests and backoff.

What to open for what:

    client, options, request    what an author calls, with fixed credentials; what may be set; what is asked for
    sending                     one request with all its tries: the hot path
    prepared, origins           how a request becomes bytes; who may see credentials; redirects
    body                        reading a reply's body: size limit, gzip, replies that break off
    waits, limits, limit_headers    when to try again; how often to ask, and what the source says about that
    failed, masking             what is said of a reply that is none, without secrets
    wire                        the requests.Session behind it
    paging, paginators          pages, and how one leads to the next
    misspelt                    options that are none
    paging_signs                what says that a list has more rows than were read
    unfollowed                  what is said then, of loops of pages and of an author's own requests
    stubs                       methods for endpoints
    oauth and its neighbours    credentials that are renewed
    conditional                 ETag and Last-Modified
    downloading                 big bodies into files
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.errors import NotModified
    from burler.http.assertion import jwt_assertion
    from burler.http.client import Auth, Client, api_key, basic, bearer, endpoints
    from burler.http.masking import mask_url
    from burler.http.oauth import oauth2_client_credentials, oauth2_refresh
    from burler.http.paginator_counts import Offset, PageNumber, UntilEmpty
    from burler.http.paginator_cursor import Cursor
    from burler.http.paginator_links import LinkHeader, NextUrl
    from burler.http.paginators import Paginator, SinglePage
    from burler.http.refreshing import one_time, periodic
    from burler.http.reply import Reply
    from burler.http.request import Request

__all__ = [
    "Auth",
    "Client",
    "Cursor",
    "LinkHeader",
    "NextUrl",
    "NotModified",
    "Offset",
    "PageNumber",
    "Paginator",
    "Reply",
    "Request",
    "SinglePage",
    "UntilEmpty",
    "api_key",
    "basic",
    "bearer",
    "endpoints",
    "jwt_assertion",
    "mask_url",
    "oauth2_client_credentials",
    "oauth2_refresh",
    "one_time",
    "periodic",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Auth": "client",
            "Client": "client",
            "Cursor": "paginator_cursor",
            "LinkHeader": "paginator_links",
            "NextUrl": "paginator_links",
            "NotModified": "conditional",
            "Offset": "paginator_counts",
            "PageNumber": "paginator_counts",
            "Paginator": "paginators",
            "Reply": "reply",
            "Request": "request",
            "SinglePage": "paginators",
            "UntilEmpty": "paginator_counts",
            "api_key": "client",
            "basic": "client",
            "bearer": "client",
            "endpoints": "client",
            "jwt_assertion": "assertion",
            "mask_url": "masking",
            "oauth2_client_credentials": "oauth",
            "oauth2_refresh": "oauth",
            "one_time": "refreshing",
            "periodic": "refreshing",
        },
    )
