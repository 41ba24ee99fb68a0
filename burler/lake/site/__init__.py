"""A static site about a lake: its taps, streams, fields and schema versions ("auto-documentation" in Singerlake Pt2).

What to open for what:

    build, output         the whole; its folder
    gather, facts         what is known of a lake; the same as frozen data
    fields, changes       fields of a schema; what a schema version changed
    samples, tally, plot  some records; how much, and when; bars over time
    render, templates/    HTML
    names, search, words  names of pages; the search's index; numbers, sizes and times in words

The pages need no server and no network. All that comes from the lake (names, descriptions, samples) is escaped by the
templates, and no page name is taken from it unchanged.
"""

from __future__ import annotations

from burler.lake.site.build import Built, build_site

__all__ = ["Built", "build_site"]
