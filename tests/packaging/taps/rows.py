"""Two rows, out of nothing."""

import burler

tap = burler.tap("tap-rows")


@tap.sync("rows", key_properties="id")
def rows():
    yield {"id": 1}
    yield {"id": 2}


tap.schema("rows", {"type": "object", "properties": {"id": {"type": "integer"}}})
