"""What the log of this process shows beside what it must. As the log itself it is of the process, not of one run."""

from __future__ import annotations

from burler.settings import Settings


class LogSettings:
    """The settings of a run that its log follows.

    Attributes:
        values: values of rows may stand in log lines, errors and reports.
        requests: each HTTP request has a METRIC line.
    """

    def __init__(self) -> None:
        self.values = False
        self.requests = False

    def follow(self, settings: Settings) -> None:
        """From here on it is as a run's settings say."""
        self.values, self.requests = settings.log_values, settings.metrics == "requests"


log_settings = LogSettings()


def value(text: str) -> str:
    """A value in an error about it; ``a value`` where values are not shown."""
    return text if log_settings.values else "a value"


def near(data: bytes | str, most: int = 60) -> str:
    """``, near 'data'``, for an error about data that is broken there; nothing where values are not shown."""
    if not log_settings.values:
        return ""
    text = data if isinstance(data, str) else data[: 4 * most].decode("utf-8", "replace")
    return f", near {text[:most]!r}"
