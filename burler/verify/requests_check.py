"""Judges what a tap asked its source (rules of area H)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burler.spec.finding import PLACES, Findings
from burler.spec.limits import Limits
from burler.verify import requests_pages as pages
from burler.verify.requests_lists import Open
from burler.verify.requests_noted import GONE, PASSING, Failure
from burler.verify.requests_pages import Series
from burler.verify.requests_watch import RequestWatch

_CODES = tuple(f"H7{number:02d}" for number in range(1, 13))
_REQUESTS_OF_A_TOKEN = 4  # a token for fewer than so many is none that had run out
_UNASKED = ("HEAD", "OPTIONS")


def check_requests(
    watch: RequestWatch,
    rows: Mapping[str, int],
    findings: Findings,
    limits: Limits,
    *,
    ended_well: Callable[[str | None], bool] = lambda _stream: True,
    resumed: bool = False,
) -> dict[str, str]:
    """Report what is wrong with the requests of one run.

    Args:
        rows: how many each stream gave.
        ended_well: whether a stream came to its end by itself, without an error. Of others nobody can say that pages
            are missing. None stands for what belongs to no stream.
        resumed: the run had a STATE to go on from, where a list may be read from its middle.

    Returns:
        the rules that could not be looked at, by code, with the reason.
    """
    _check_costs(watch, rows, findings, limits)
    _check_safety(watch, findings)
    for series in watch.lists.series.values():
        _check_series(watch, series, findings, whole=ended_well(series.stream), resumed=resumed)
    for failure in watch.failures.values():
        if ended_well(failure.stream):
            _check_failure(watch, failure, findings)
    for last in watch.lists.open.values() if not resumed else ():
        if ended_well(last.stream):
            _check_open(last, findings)
    return _unchecked(watch)


def _check_costs(watch: RequestWatch, rows: Mapping[str, int], findings: Findings, limits: Limits) -> None:
    answered: dict[str | None, int] = {}
    total = sum(one.requests for one in watch.endpoints.values())
    for (stream, name), one in list(watch.endpoints.items()):
        answered[stream] = answered.get(stream, 0) + one.answered
        if one.no_timeout:
            fact = f"{one.no_timeout} of {one.requests} requests to {name} had no timeout"
            findings.add("H701", f"{fact}.", stream=stream, path=name, count=one.no_timeout)
        if one.repeated and not (one.login and one.repeated * _REQUESTS_OF_A_TOKEN < total):
            times = "once more" if one.repeated == 1 else f"{one.repeated} times more"
            fact = f"a request that had been answered was sent {times}, such as {one.repeated_url}"
            findings.add("H702", f"{fact}.", stream=stream, path=name, count=one.repeated)
    for stream, requests in answered.items():
        count = rows.get(stream, 0) if stream is not None else 0
        if count and requests >= limits.requests_counted and requests > count * limits.requests_per_row:
            most = max((name for whose, name in watch.endpoints if whose == stream), key=_asked_most(watch, stream))
            findings.add(
                "H703",
                f"{requests} requests for {count} rows ({requests / count:.2g} a row); most of them: {most}.",
                stream=stream,
            )


def _asked_most(watch: RequestWatch, stream: str | None) -> Callable[[str], int]:
    return lambda name: watch.endpoints[stream, name].requests


def _check_safety(watch: RequestWatch, findings: Findings) -> None:
    for (stream, name), (count, shown) in list(watch.plain.items()):
        fact = f"{name} sent {shown} over http, which everybody on the way can read"
        findings.add("H707", f"{fact}.", stream=stream, path=name, count=count)
    for (stream, name), (count, waited) in list(watch.early.items()):
        fact = f"{name} was asked again after {waited} that the source's Retry-After named"
        findings.add("H711", f"{fact}.", stream=stream, path=name, count=count)
    for (stream, name), (count, host) in list(watch.unverified.items()):
        fact = f"{name} went to {host} without a look at its certificate (verify=False)"
        findings.add("H712", f"{fact}.", stream=stream, path=name, count=count)


def _check_series(watch: RequestWatch, series: Series, findings: Findings, *, whole: bool, resumed: bool) -> None:
    endpoint, place = series.endpoint, series.shown
    where: dict[str, Any] = {"stream": series.stream, "path": endpoint, "place": place}
    if whole:
        holes = pages.skipped(series, resumed=resumed)
        if holes:
            fact = f"{_holes(series, holes)} never asked for; asked for were {_values(series)}"
            findings.add("H704", f"{fact}.", count=len(holes), **where)
        elif not resumed and _starts_late(watch, series):
            fact = f"the first page asked for is {series.name}={series.values[0]}"
            findings.add("H704", f"{fact}; nobody asked for the one before it.", **where)
        cap = pages.capped(series)
        if cap is not None:
            fact = f"pages have {cap} rows, however many are asked for, and {series.name} goes on by"
            findings.add("H708", f"{fact} {series.step}: {_values(series)}.", count=len(series.rows) - 1, **where)
    twice = pages.repeated_rows(series)
    if twice:
        first, last = twice[0]
        shown = str(first) if first == last else f"{first} to {last}"
        fact = f"rows {shown} came twice: {_values(series)} with a limit of {series.limit}"
        findings.add("H705", f"{fact}.", count=len(twice), **where)


def _starts_late(watch: RequestWatch, series: Series) -> bool:
    first = watch.lists.first
    if watch.lists.full or series.whole in first:
        return False
    return pages.starts_late(series, alone=series.place not in first)


def _holes(series: Series, holes: list[tuple[int, int]]) -> str:
    parts = [str(first) if first == last else f"{first} to {last}" for first, last in holes[:PLACES]]
    more = f" and {len(holes) - PLACES} more" if len(holes) > PLACES else ""
    what = "page" if series.kind == "page" else "row"
    one = len(holes) == 1 and holes[0][0] == holes[0][1]
    return f"{what} {parts[0]} was" if one else f"{what}s {', '.join(parts)}{more} were"


def _values(series: Series) -> str:
    values = series.values
    shown = ", ".join(map(str, values[:6]))
    return f"{series.name}={shown}{', ...' if len(values) > 6 else ''}"


def _check_failure(watch: RequestWatch, failure: Failure, findings: Findings) -> None:
    if failure.endpoint.startswith(_UNASKED) or (failure.status in GONE):
        return
    status = failure.status
    code = "H706" if status is None or status >= 500 or status in PASSING else "H710"
    what = "the reply was lost" if status is None else f"the source answered {status}"
    again = "no later try went well" if code == "H706" else "the stream ended well all the same"
    fact = f"{what} ({failure.shown}), and {again}: its rows may be missing"
    if code == "H710" and _is_behind_the_end(watch, failure):
        return
    findings.add(code, f"{fact}.", stream=failure.stream, path=failure.endpoint, place=failure.shown)


def _is_behind_the_end(watch: RequestWatch, failure: Failure) -> bool:
    """Whether it was the page after the last one: some sources say so with an error."""
    series = None if failure.series is None else watch.lists.series.get(failure.series)
    return series is not None and len(series.rows) > 1 and failure.value == max(series.rows)


def _check_open(last: Open, findings: Findings) -> None:
    fact = f"the last page had {last.rows} rows, and its '{last.says}' says that there is more"
    findings.add("H709", f"{fact}; nobody asked for it.", stream=last.stream, path=last.endpoint, place=last.shown)


def _unchecked(watch: RequestWatch) -> dict[str, str]:
    found = dict(watch.unchecked)
    if watch.lists.full:
        found |= dict.fromkeys(("H704", "H705", "H708"), "there were more pages than are kept")
    if not watch.endpoints:
        reason = "no request was seen"
        if watch.unknown:
            kinds = "requests.Session, httpx.Client and burler.http.Client are known, and objects that hold one"
            reason = f"the requests of a client of type {', '.join(watch.unknown)} can't be seen: {kinds}"
        found = {**dict.fromkeys(_CODES, reason), **found}
    return found
