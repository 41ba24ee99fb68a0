"""Methods for endpoints, made on a class: of ``burler.http.endpoints`` and ``Client.generate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from burler.call import caller
from burler.errors import DeclarationError
from burler.http.endpoint_methods import KNOWN_VERBS, VERBS, Endpoint, make_method
from burler.http.endpoint_own import own_options, with_backoff
from burler.http.endpoint_paths import name_of_path, path_template
from burler.http.paginators import Paginator, PagingFunction, coerce_paginator
from burler.http.verbs import Verbs
from burler.paths import path_of
from burler.suggest import did_you_mean

Class = TypeVar("Class", bound=type)
VerbsGiven = Sequence[str] | Mapping[str, Sequence[str]] | None

_MADE = "_burler_endpoints"


def generated(
    base: type,
    paths: Iterable[str] | Mapping[str, str],
    *,
    verbs: VerbsGiven = None,
    backoff_strategy: Callable[[], Any] | None = None,
    paginator: Paginator | PagingFunction | None = None,
    records_path: str | Sequence[str] | None = None,
) -> Callable[[Class], Class]:
    """``@Client.generate(["/contacts", "/contacts/{id}/notes"])``: as ``endpoints``, with names from the paths:
    contacts, contacts_notes; ``/contacts/{id}`` is contacts_by_id.

    Args:
        base: what a class that is no client becomes a subclass of.
    """
    place = caller().place
    if isinstance(paths, str):
        raise DeclarationError(f'{place}: generate takes a list of paths: ["{paths:.60}"].')
    given = list(paths.items()) if isinstance(paths, Mapping) else [(name_of_path(str(one)), one) for one in paths]
    return decorator(given, base, verbs, backoff_strategy, paginator, records_path, place)


def decorator(
    given: list[tuple[str, str]],
    base: type,
    verbs: VerbsGiven,
    backoff_strategy: Callable[[], Any] | None,
    paginator: Any,
    records_path: Any,
    place: str,
) -> Callable[[Class], Class]:
    """See :func:`burler.http.endpoints`.

    Args:
        given: names and paths. base: what a class that is no client becomes a subclass of. place: of the declaration.
    """
    declared = _declared(given, verbs, paginator, records_path, place)
    if backoff_strategy is not None and not callable(backoff_strategy):
        raise DeclarationError(f"{place}: backoff_strategy must be a function such as backoff.expo, not what it gave.")

    def decorate(cls: Class) -> Class:
        if not isinstance(cls, type):
            raise DeclarationError(f"{place}: endpoints stands above a class, not above {cls!r:.60}.")
        return _decorated(cls, base, declared, backoff_strategy, place)  # type: ignore[return-value]

    return decorate


def _declared(
    given: list[tuple[str, str]], verbs: VerbsGiven, paginator: Any, records_path: Any, place: str
) -> list[Endpoint]:
    names = [name for name, _ in given]
    if not names:
        raise DeclarationError(f'{place}: no endpoint was given. Write endpoints(contacts="/contacts").')
    for name in names:
        if not isinstance(name, str) or not f"get_{name}".isidentifier():
            raise DeclarationError(f"{place}: {name!r:.60} can't be part of a method's name: letters, digits and '_'.")
        if names.count(name) > 1:
            both = " and ".join(f"'{path}'" for other, path in given if other == name)
            raise DeclarationError(
                f"{place}: endpoint '{name}' stands twice, for {both}. Name them: endpoints({name}=..., {name}_2=...)."
            )
    if isinstance(verbs, Mapping):
        for name in verbs:
            if name not in names:
                raise DeclarationError(f"{place}: verbs names '{name}', which is no endpoint.{_hint(name, names)}")
    try:
        paginator = None if paginator is None else coerce_paginator(paginator)
        records_path = None if records_path is None else path_of(records_path)
        return [
            Endpoint(name, path_template(path), _verbs_of(name, verbs, place), paginator, records_path)
            for name, path in given
        ]
    except (ValueError, TypeError) as error:
        raise DeclarationError(f"{place}: {error}") from None


def _verbs_of(name: str, verbs: VerbsGiven, place: str) -> tuple[str, ...]:
    given: Any = verbs.get(name, VERBS) if isinstance(verbs, Mapping) else VERBS if verbs is None else verbs
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DeclarationError(
            f"{place}: verbs of '{name}' must be a list, such as ['get', 'pages'], not {given!r:.60}."
        )
    found = [one.lower() if isinstance(one, str) else one for one in given]
    for verb in found:
        if verb not in KNOWN_VERBS:
            raise DeclarationError(f"{place}: unknown verb {verb!r:.60} of '{name}'.{_hint(verb, KNOWN_VERBS)}")
    return tuple(dict.fromkeys(found))


def _hint(name: Any, known: Iterable[str]) -> str:
    known = list(known)
    return f"{did_you_mean(name, known)} Known: {', '.join(known)}."


def _decorated(cls: type, base: type, declared: list[Endpoint], backoff_strategy: Any, place: str) -> type:
    own = getattr(cls, "request", None)
    is_client = issubclass(cls, Verbs)
    if is_client and own is Verbs.request:
        own = None
    if own is not None:
        _check_own(own, cls, place)
    elif not is_client:
        cls = _as_client(cls, base, place)
    if backoff_strategy is not None and own is not None:
        own = with_backoff(own, backoff_strategy, of_client=is_client)
        cls.request = own  # type: ignore[attr-defined]
    if backoff_strategy is not None and (own is None or is_client):
        cls.backoff_strategy = staticmethod(backoff_strategy)  # type: ignore[attr-defined]
    for endpoint in declared:
        _add(cls, endpoint, own, place)
    if not hasattr(cls, "__getattr__"):
        cls.__getattr__ = _missing  # type: ignore[attr-defined]
    return cls


def _missing(self: Any, name: str) -> Any:
    """What a class with endpoints says of a method that it does not have."""
    made = sorted(getattr(type(self), _MADE, ()))
    hint = "" if name.startswith("_") else did_you_mean(name, made)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'.{hint}", name=name, obj=self)


def _check_own(own: Any, cls: type, place: str) -> None:
    try:
        if not callable(own):
            raise ValueError("it is no method")
        own_options(own)
    except (ValueError, TypeError) as error:
        raise DeclarationError(f"{place}: {cls.__name__}.request can't be used: {error}.") from None


def _as_client(cls: type, base: type, place: str) -> type:
    """A class with the same name that is a Client as well."""
    if cls.__init__ is not object.__init__:  # type: ignore[misc]
        raise DeclarationError(
            f"{place}: {cls.__name__} has an __init__ and is no client. Write class "
            f"{cls.__name__}(burler.http.Client), and call super().__init__(base_url) in it; or give it a method "
            "request(self, method, path, **options)."
        )
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, base), names)


def _add(cls: type, endpoint: Endpoint, own: Any, place: str) -> None:
    endpoint = Endpoint(
        endpoint.name, endpoint.path, endpoint.verbs, endpoint.paginator, endpoint.records_path, own_request=own
    )
    for verb in endpoint.verbs:
        name = f"{verb}_{endpoint.name}"
        if hasattr(cls, name):
            kind = "an endpoint" if name in getattr(cls, _MADE, ()) else "a method"
            raise DeclarationError(
                f"{place}: {cls.__name__} has {kind} {name} already. Choose another name than "
                f"'{endpoint.name}', or say which verbs it has: verbs={{'{endpoint.name}': [...]}}."
            )
        try:
            method = make_method(endpoint, verb, cls.__qualname__, cls.__module__)
        except ValueError as error:
            raise DeclarationError(f"{place}: {endpoint.path.text}, {name}: {error}.") from None
        setattr(cls, name, method)
    made = {f"{verb}_{endpoint.name}" for verb in endpoint.verbs}
    setattr(cls, _MADE, frozenset(getattr(cls, _MADE, frozenset()) | made))
