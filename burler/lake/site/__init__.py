"""A static site about a lake: its taps, streams, fields and schema versions ("auto-documentation" in Singerlake Pt2).

The pages need no server and no network. All that comes from the lake (names, descriptions, samples) is escaped by the
templates, and no page name is taken from it unchanged.
"""

from __future__ import annotations

from burler.lake.site.build import Built, build_site

__all__ = ["Built", "build_site"]
