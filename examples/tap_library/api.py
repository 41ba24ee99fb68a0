"""The library's API: which endpoints there are. burler.http does the rest."""

import burler


@burler.http.endpoints(
    branches="/library/branches.json",
    rooms="/library/rooms.json",
    authors="/library/authors.json",
    books="/library/books.json",
    book="/library/books/{isbn}.json",
    loans="/library/loans.json",
    loan_events="/library/loan_events.json",
    overdue="/library/overdue.json",
    verbs=("get", "pages", "rows"),
)
class LibraryApi(burler.http.Client):
    """datasette's API over the library's tables; see `server.py`."""

    def check(self) -> None:
        """Ask for next to nothing, so that a wrong token is one error and not one for each stream.

        Raises:
            burler.http.CredentialsError: the token is not accepted.
        """
        self.get("/-/versions.json")
