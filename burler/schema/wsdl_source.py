"""A stream's schema from a WSDL: the name is kept for it; the support is not there yet."""

from __future__ import annotations

from typing import Any, NoReturn

from burler.errors import DeclarationError


def wsdl(*arguments: Any, **options: Any) -> NoReturn:
    """Reserved: a schema from a WSDL comes with burler's SOAP support, which is not there yet.

    Raises:
        DeclarationError: always; it says what to do until then.
    """
    raise DeclarationError(
        "burler.wsdl: WSDL schemas come with burler's SOAP support, which is not there yet.\n"
        "  Until then: a function with @tap.schema('<stream>') that asks zeep for the type's elements and gives a dict."
    )
