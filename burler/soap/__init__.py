"""Reading SOAP services through zeep: calls with burler's own retries, limits and errors, and answers as rows.

What to open for what:

    client              what an author calls: a WSDL's operations, page by page
    paging              from one page to the next
    calling             one call: the envelope, the request, the answer's body
    faults              faults as errors
    elements            the way to the elements of rows
    reading, texts      these as rows, and texts as values
    objects             zeep's objects as rows

and of the WSDL itself:

    wsdl                a stream's schema from it
    definitions, documents      what zeep reads of it, and from where it may come
    lookup, fields      operations, elements and types by their names; what a type holds
    schemas             types as JSON Schema
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.soap.client import Client
    from burler.soap.faults import Fault
    from burler.soap.objects import rows

__all__ = ["Client", "Fault", "rows"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(__name__, {"Client": "client", "Fault": "faults", "rows": "objects"})
