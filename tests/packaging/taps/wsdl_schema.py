"""A schema out of an XSD."""

import burler

tap = burler.tap("tap-soap")


@tap.sync("contacts", key_properties="id")
def contacts():
    yield {"id": 1}


tap.schema("contacts", burler.wsdl(filepath="crm.xsd", element="Contact"))
