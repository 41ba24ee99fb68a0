"""Two schemas that many WSDLs import by their public address: attributes of XML itself, and SOAP's encoding.

They are written here in the little that types refer to, so that no WSDL makes burler ask those servers.
"""

from __future__ import annotations

XML_SCHEMA = """\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/XML/1998/namespace">
  <xs:attribute name="lang" type="xs:string"/>
  <xs:attribute name="space" type="xs:NCName"/>
  <xs:attribute name="base" type="xs:anyURI"/>
  <xs:attribute name="id" type="xs:ID"/>
  <xs:attributeGroup name="specialAttrs">
    <xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
    <xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/>
  </xs:attributeGroup>
</xs:schema>
"""

_ENCODED = [
    "anyURI",
    "base64Binary",
    "boolean",
    "byte",
    "date",
    "dateTime",
    "decimal",
    "double",
    "duration",
    "float",
    "hexBinary",
    "int",
    "integer",
    "long",
    "NCName",
    "negativeInteger",
    "nonNegativeInteger",
    "positiveInteger",
    "QName",
    "short",
    "string",
    "time",
    "token",
    "unsignedByte",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
]


def _encoding() -> str:
    """SOAP 1.1's encoding: each simple type as an element and as a type with attributes, and arrays of anything."""
    named = "".join(
        f'<xs:element name="{name}" type="tns:{name}"/>'
        f'<xs:complexType name="{name}"><xs:simpleContent><xs:extension base="xs:{name}">'
        '<xs:attributeGroup ref="tns:commonAttributes"/></xs:extension></xs:simpleContent></xs:complexType>'
        for name in _ENCODED
    )
    return f"""\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:tns="http://schemas.xmlsoap.org/soap/encoding/"
    targetNamespace="http://schemas.xmlsoap.org/soap/encoding/">
  <xs:attribute name="root" type="xs:boolean"/>
  <xs:attribute name="arrayType" type="xs:string"/>
  <xs:attribute name="offset" type="xs:string"/>
  <xs:attribute name="position" type="xs:string"/>
  <xs:attributeGroup name="commonAttributes">
    <xs:attribute name="id" type="xs:ID"/><xs:attribute name="href" type="xs:anyURI"/>
  </xs:attributeGroup>
  <xs:attributeGroup name="arrayAttributes">
    <xs:attribute ref="tns:arrayType"/><xs:attribute ref="tns:offset"/>
  </xs:attributeGroup>
  <xs:group name="Array">
    <xs:sequence><xs:any namespace="##any" minOccurs="0" maxOccurs="unbounded" processContents="lax"/></xs:sequence>
  </xs:group>
  <xs:complexType name="Array">
    <xs:group ref="tns:Array" minOccurs="0"/>
    <xs:attributeGroup ref="tns:arrayAttributes"/><xs:attributeGroup ref="tns:commonAttributes"/>
  </xs:complexType>
  <xs:element name="Array" type="tns:Array"/>
  <xs:simpleType name="base64"><xs:restriction base="xs:base64Binary"/></xs:simpleType>
  {named}
</xs:schema>
"""


def known_document(location: str) -> bytes | None:
    """The document at one of the public addresses that burler has a copy of; None for any other."""
    place = location.removeprefix("https://").removeprefix("http://")
    if place in ("www.w3.org/2001/xml.xsd", "www.w3.org/2001/03/xml.xsd", "www.w3.org/2009/01/xml.xsd"):
        return XML_SCHEMA.encode()
    if place == "schemas.xmlsoap.org/soap/encoding/":
        return _encoding().encode()
    return None
