"""A static site about a lake: its taps, streams, fields and schema versions ("auto-documentation" in Singerlake Pt2).

What to open for what:

    build               the whole, stream by stream, and the folder it goes into
    facts               what is known of taps and streams: fields, versions and their changes, amounts, some records
    pages, templates/   HTML: names of pages, plots, the search's index

The pages need no server and no network. All that comes from the lake (names, descriptions, samples) is escaped by the
templates, and no page name is taken from it unchanged.
"""

from __future__ import annotations

from burler.lake.site.build import Built, build_site

__all__ = ["Built", "build_site"]
