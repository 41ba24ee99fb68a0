"""The kinds of taps that there are templates for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of tap.

    Attributes:
        name: also the folder of its templates.
        about: what such a tap reads, in a few words.
        description: of the generated package.
        dependencies: what it needs, burler among it.
        schemas: whether its package has a folder of JSON Schemas.
        prepare: a command of the first run, before the tap can read anything.
        chosen: a replication key that the README speaks of; for taps whose users choose one. Else None.
    """

    name: str
    about: str
    description: str
    dependencies: tuple[str, ...] = ("singer-burler",)
    schemas: bool = False
    prepare: str = ""
    chosen: str | None = None


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "rest",
            about="a REST API",
            description="Singer tap for the API of ...",
            schemas=True,
            prepare="python sample_server.py &",
        ),
        Kind(
            "database",
            about="tables and views of a database",
            description="Singer tap for the tables of a database",
            # Drivers of other databases than SQLite: its README says which.
            dependencies=("singer-burler", "SQLAlchemy>=2.0"),
            prepare="python sample_database.py",
            chosen="updated_at",
        ),
        Kind(
            "file",
            about="CSV and JSON lines files of a folder",
            description="Singer tap for the files of a folder",
            dependencies=("singer-burler[files]",),
            schemas=True,
        ),
    )
}
