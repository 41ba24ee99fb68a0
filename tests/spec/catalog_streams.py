"""A stream that keeps all rules, and what is found of one that does not."""

from burler.spec import check_catalog

TEXT = {"type": ["null", "string"]}


def contacts(*, root=None, fields=None, said=None, **entry):
    """A stream that keeps all rules, changed where a test says so."""
    properties = {"id": {"type": "integer"}, "email": TEXT, **(fields or {})}
    inclusions = {name: {"inclusion": "automatic" if name == "id" else "available"} for name in properties}
    inclusions.update(said or {})
    metadata = [{"breadcrumb": ["properties", name], "metadata": one} for name, one in inclusions.items()]
    return {
        "tap_stream_id": "contacts",
        "stream": "contacts",
        "key_properties": ["id"],
        "schema": {"type": "object", "properties": properties},
        "metadata": [{"breadcrumb": [], "metadata": root or {}}, *metadata],
        **entry,
    }


def codes(*streams, **options):
    return [finding.code for finding in check_catalog({"streams": list(streams)}, **options)]


def one(*streams, **options):
    (finding,) = check_catalog({"streams": list(streams)}, **options)
    return finding


def of_field(node, **options):
    """What is found of a field with this schema: (code, path)."""
    stream = contacts(fields={"field": node}, **options)
    return [(finding.code, finding.path) for finding in check_catalog({"streams": [stream]})]
