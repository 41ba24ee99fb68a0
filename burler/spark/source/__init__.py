"""``spark.read.format("burler")``: a stream of a burler app, or of any Singer tap's command, as a DataFrame.

    options      what the format's options say
    sending      a tap as text that fits an option (``reference``); ``read``
    planning     discovery and the list of tasks, on the driver
    foreign      any tap's command and catalog; ``messages`` what it prints
    app          a part of a burler app, on an executor
    declared     the columns that every batch is held to
    tasks        what travels, and the rows it becomes
    pushdown     filters; ``telling`` errors; ``datasource`` the classes that Spark calls

Only text and plain data travel: ``DefaultSource`` is found by its name in every process, and resolves the rest there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.spark.source.sending import read, reference

__all__ = ["DefaultSource", "PushingReader", "Reader", "read", "reference"]

_CLASSES = ("DefaultSource", "Reader", "PushingReader")
_others, __dir__ = lazy_names(__name__, {"read": "sending", "reference": "sending"})


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        return _others(name)
    from burler.spark.source.datasource import make_classes

    globals().update(make_classes(__name__))
    return globals()[name]
