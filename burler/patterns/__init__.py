"""Ways to read a source that come up again and again: each is a few lines on top of what a stream offers.

What to open for what:

    date_windows, window_plan, spans    windows of time; where they begin, end and are noted; time zones and calendars
    shrinking                           windows that are halved when the source says "too much"
    ids                                 ranges of integer keys
    cursors                             pages that name the next one; sync tokens
    numbered                            numbered pages and offsets
    newer, digests                      everything is asked for, what is new goes out: by a key, by digests
    progress                            where a loop notes how far it got: the bookmark, or stream.state
    items                               what a fetch function may give
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.patterns.cursors import cursor_pages
    from burler.patterns.date_windows import Window, windows
    from burler.patterns.digests import changed_only
    from burler.patterns.ids import IdRange, id_ranges
    from burler.patterns.newer import full_request_incremental_emit
    from burler.patterns.numbered import offsets, pages
    from burler.patterns.shrinking import TooMuch, read_windows

__all__ = [
    "IdRange",
    "TooMuch",
    "Window",
    "changed_only",
    "cursor_pages",
    "full_request_incremental_emit",
    "id_ranges",
    "offsets",
    "pages",
    "read_windows",
    "windows",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "IdRange": "ids",
            "TooMuch": "shrinking",
            "Window": "date_windows",
            "changed_only": "digests",
            "cursor_pages": "cursors",
            "full_request_incremental_emit": "newer",
            "id_ranges": "ids",
            "offsets": "numbered",
            "pages": "numbered",
            "read_windows": "shrinking",
            "windows": "date_windows",
        },
    )
