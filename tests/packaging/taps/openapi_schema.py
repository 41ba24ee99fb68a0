"""A schema out of an API's description in YAML."""

import burler

tap = burler.tap("tap-api")


@tap.sync("rows", key_properties="id")
def rows():
    yield {"id": 1}


tap.schema("rows", burler.openapi("api.yaml", "Row"))
