"""Reading files of any store that fsspec knows: CSV, JSON, Parquet, packed or not; exports that are asked for first.

What to open for what:

    reader       ``read``: from a pattern to pages, file by file; which files are new: the source state
    options      how files are to be read: ``Csv``, and what all functions take
    cells        what cells of CSV mean, by the schema
    contents     one file as pages: CSV, Parquet, JSON; columns that say where a row is from; errors with a cure
    sampling     ``schema``: a schema source made from files
    exports      ``export``: ask for an export, wait for it, fetch it
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.files.exports import Part, export
    from burler.files.options import Csv
    from burler.files.reader import read
    from burler.files.sampling import schema

__all__ = ["Csv", "Part", "export", "read", "schema"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Csv": "options",
            "Part": "exports",
            "export": "exports",
            "read": "reader",
            "schema": "sampling",
        },
    )
