"""What ``check`` sees of JSON files that are not there: manifests, catalogues, ``singerlake.json``.

Other writers need not make them. So they are lost only where the lake has been kept with them: where there is
a ``singerlake.json``, or a manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from burler.lake import layout
from burler.lake.care.check_stream import StreamCheck
from burler.lake.care.findings import Finding, finding
from burler.lake.care.locks import LOCK
from burler.storage.base import Store

_NO_NOTES = "Restore it from a copy. Else burler lake rebuild makes it anew, without owners and descriptions."


def lost(store: Store, streams: Sequence[StreamCheck], *, whole: bool) -> tuple[list[Finding], tuple[str, ...]]:
    """Findings; and remarks where nothing is wrong. To be called last: what a writer makes meanwhile is there then.

    Args:
        whole: whether ``streams`` are all of the lake.
    """
    with_data = [stream for stream in streams if stream.listing.data_files]
    bare = [one for one in with_data if one.is_bare and store.read(one.listing.place.manifest) is None]
    singerlake = store.read(layout.singerlake_path())
    if singerlake is None and len(bare) == len(with_data):
        remark = (
            "no stream has a manifest, as writers of another make may leave a lake; readers list folders, and read "
            "streams from the start each time. burler lake rebuild makes manifests."
        )
        return [], (remark,) if bare else ()
    findings = [
        finding(
            "no manifest",
            one.listing.place.manifest,
            f"is missing: there are {len(one.listing.data_files):,} data files, which readers read anew in each run",
        )
        for one in bare
    ]
    findings += _catalogues(store, with_data)
    if singerlake is None and whole:
        findings.append(finding("json", layout.singerlake_path(), "is missing: it names the taps", _NO_NOTES))
    return findings, ()


def _catalogues(store: Store, streams: Sequence[StreamCheck]) -> Iterator[Finding]:
    """A writer makes its tap's catalogue after its first commit: while one is at work nothing is said."""
    for folder, some in groupby(streams, lambda one: one.listing.place.folder.rpartition("/")[0]):
        at_work = any(file.path.endswith(f"/{LOCK}") for one in some for file in one.listing.visible)
        path = f"{folder}/catalogue.json"
        if not at_work and store.read(path) is None and store.read(f"{folder}/catalog.json") is None:
            yield finding("json", path, "is missing: it is the tap's catalogue")
