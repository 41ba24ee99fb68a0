"""Numbers of things, sizes, lengths of time, and lists of names, in words."""

from __future__ import annotations

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def counted(number: int, what: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some(names: list[str], most: int = 30) -> str:
    """Names for an error, not more than fit one line."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def cut(text: str, most: int) -> str:
    """Not longer than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def size(number: int) -> str:
    """``0 bytes``, ``1 byte``, ``1.5 KiB``, ``12 MiB``."""
    if number < 1024:
        return counted(number, "byte")
    value, unit = float(number), 0
    while value >= 999.5 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:,.1f}".removesuffix(".0") + f" {_SIZES[unit]}" if value < 10 else f"{value:,.0f} {_SIZES[unit]}"


def length(seconds: float) -> str:
    """A length of time in one or two digits that count: ``0.4 s``, ``12 s``, ``3 min``, ``5 h``, ``40 d``."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def long_time(seconds: float) -> str:
    """A length of time as a person says it: two units, or seconds and tenths."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"
