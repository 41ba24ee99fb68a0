"""The Singer vocabulary as plain functions and frozen data, usable without the framework.

What to open for what:

    messages           what goes over the wire
    lines, reader      lines of any program as messages; those as calls of a writer, or passed on
    catalog, foreign   catalogs; metadata and selection as other tools write them
    metadata, keys     metadata as list and map; its keys
    selection, select  which streams and fields are wanted; ``--select``
    state              a state, read, changed, merged
    bookmark_values    values of a replication key: their order, and how they stand in a state

Messages, metadata, catalogs, selection and state, each in a module of its own; what most programs need is here.
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.singer.catalog import Catalog, CatalogEntry, catalog_from_wire
    from burler.singer.keys import check_key
    from burler.singer.messages import ActivateVersion, Records, Schema, State, format_time, parse_line, to_line
    from burler.singer.metadata import Breadcrumb, fields, standard_metadata, to_list, to_map
    from burler.singer.select import apply_select, parse_select
    from burler.singer.selection import deselected, field_selected, prune, stream_selected
    from burler.singer.state import check_state, get_bookmark, merge_states, parse_state, set_bookmark, state_diff

__all__ = [
    "ActivateVersion",
    "Breadcrumb",
    "Catalog",
    "CatalogEntry",
    "Records",
    "Schema",
    "State",
    "apply_select",
    "catalog_from_wire",
    "check_key",
    "check_state",
    "deselected",
    "field_selected",
    "fields",
    "format_time",
    "get_bookmark",
    "merge_states",
    "parse_line",
    "parse_select",
    "parse_state",
    "prune",
    "set_bookmark",
    "standard_metadata",
    "state_diff",
    "stream_selected",
    "to_line",
    "to_list",
    "to_map",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ActivateVersion": "messages",
            "Breadcrumb": "metadata",
            "Catalog": "catalog",
            "CatalogEntry": "catalog",
            "Records": "messages",
            "Schema": "messages",
            "State": "messages",
            "apply_select": "select",
            "catalog_from_wire": "catalog",
            "check_key": "keys",
            "check_state": "state",
            "deselected": "selection",
            "field_selected": "selection",
            "fields": "metadata",
            "format_time": "messages",
            "get_bookmark": "state",
            "merge_states": "state",
            "parse_line": "messages",
            "parse_select": "select",
            "parse_state": "state",
            "prune": "selection",
            "set_bookmark": "state",
            "standard_metadata": "metadata",
            "state_diff": "state",
            "stream_selected": "selection",
            "to_line": "messages",
            "to_list": "metadata",
            "to_map": "metadata",
        },
    )
