"""The class that ``endpoints`` gives back is the class itself; methods made later are Any where it says so."""

from typing import TYPE_CHECKING, Any, assert_type

import burler


@burler.http.endpoints(contacts="/contacts", verbs={"contacts": ("get", "pages")})
class Crm(burler.http.Client):
    def one(self) -> int:
        return 1

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


crm = Crm("https://api.example.com")
assert_type(crm, Crm)
assert_type(crm.one(), int)
crm.get_contacts()
kind: type[Crm] = Crm
