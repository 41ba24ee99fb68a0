"""The helpdesk's API: its endpoints, on burler's HTTP client."""

from __future__ import annotations

import burler


@burler.http.endpoints(
    accounts="/accounts",
    tickets="/accounts/{account}/tickets",
    comments="/tickets/{ticket}/comments",
    months="/events/months",
    events="/events",
    agents="/agents",
    verbs=["get", "pages", "rows"],
)
class Api(burler.http.Client):
    """Asks the helpdesk, for all threads of a run.

    Lists go on where the `Link` header says. A helpdesk that is busy, slow or broken (429, 5xx, no answer in time) is
    asked again, up to `retries` times.
    """
