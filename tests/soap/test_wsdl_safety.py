"""No document of a WSDL is read from where its author does not allow it: each test has a real server that would see the
request, or a real file that would be read, and shows that it is reached once it is allowed."""

from __future__ import annotations

import base64
import logging
import os
import time

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import canary

XSD = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" xmlns:t="urn:t" '
    'xmlns:o="urn:other" xmlns:xi="http://www.w3.org/2001/XInclude">{inside}'
    '<xs:element name="Row"><xs:complexType><xs:sequence>'
    '<xs:element name="Id" type="xs:int"/>{field}</xs:sequence></xs:complexType></xs:element></xs:schema>'
)
OTHER = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:other">'
    '<xs:simpleType name="Stolen"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema>'
)
WSDL = (
    '<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" '
    'xmlns:xs="http://www.w3.org/2001/XMLSchema">{inside}<wsdl:types>{schema}</wsdl:types></wsdl:definitions>'
)
FIELD = '<xs:element name="Stolen" type="o:Stolen"/>'


def importing(location, how="xs:import"):
    """An XSD or WSDL whose row has a field ``Stolen`` of a type that stands in another document."""
    named = f'namespace="urn:other" schemaLocation="{location}"'
    if how == "xs:import":
        return XSD.format(inside=f"<xs:import {named}/>", field=FIELD)
    if how == "xs:include":
        return XSD.format(inside=f'<xs:include schemaLocation="{location}"/>', field="")
    if how == "wsdl:types":
        return WSDL.format(inside="", schema=importing(location))
    assert how == "wsdl:import"
    inside = f'<wsdl:import namespace="urn:other" location="{location}"/>'
    return WSDL.format(inside=inside, schema=XSD.format(inside="", field=""))


def load(source, **options):
    kind = "url" if str(source).startswith("http") else "filepath"
    return burler.wsdl(**{kind: source}, element="Row", **options).load(where="stream 'rows' (tap_x.py:3)", config={})


def refusal(source, **options):
    with pytest.raises(DeclarationError) as caught:
        load(source, **options)
    text = str(caught.value)
    assert text.startswith("stream 'rows' (tap_x.py:3): WSDL "), text
    assert len(text.splitlines()) <= 3
    return text


HOWS = ("xs:import", "xs:include", "wsdl:types", "wsdl:import")


# ---- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
def test_a_file_does_not_make_burler_ask_a_server(web, tmp_path, how):
    server = web()
    server.pages["/s/other.xsd"] = OTHER.replace("urn:other", "urn:t") if how == "xs:include" else OTHER
    root = tmp_path / "a.wsdl"
    root.write_text(importing(f"{server.url}/s/other.xsd", how))
    text = refusal(root)
    assert "/s/other.xsd" in text and "which is not read: a WSDL in a file names the web" in text
    assert f"allow=['{server.url}/s/']" in text
    assert server.seen == []
    assert "Id" in load(root, allow=f"{server.url}/s/")["properties"]
    assert server.paths == ["/s/other.xsd"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "form", ["up", "absolute", "file url", "link", "absolute link", "link as file url", "file url with a host"]
)
def test_a_file_reads_nothing_outside_of_its_folder(tmp_path, form, how):
    secret = tmp_path / "outside" / "other.xsd"
    secret.parent.mkdir()
    secret.write_text(OTHER.replace("urn:other", "urn:t") if how == "xs:include" else OTHER)
    folder = tmp_path / "tap"
    folder.mkdir()
    (folder / "link.xsd").symlink_to(secret)
    location = {
        "up": "../outside/other.xsd",
        "absolute": str(secret),
        "file url": secret.as_uri(),
        "link": "link.xsd",
        "absolute link": str(folder / "link.xsd"),
        "link as file url": (folder / "link.xsd").as_uri(),
        "file url with a host": f"file://server/{secret}",
    }[form]
    root = folder / "a.wsdl"
    root.write_text(importing(location, how))
    text = refusal(root)
    if form == "file url with a host":
        assert "a file of another machine" in text
        return
    assert "it is not below the WSDL's folder" in text
    assert "Id" in load(root, allow=[tmp_path / "outside"])["properties"]


def test_a_folder_whose_name_begins_alike_is_another_folder(tmp_path):
    for name in ("tap", "tap-secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "tap-secret" / "other.xsd").write_text(OTHER)
    root = tmp_path / "tap" / "a.xsd"
    root.write_text(importing("../tap-secret/other.xsd"))
    assert "it is not below the WSDL's folder" in refusal(root)
    assert "it is not below the WSDL's folder" in refusal(root, allow=[tmp_path / "tap-sec"])


def test_files_below_the_folder_are_read(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.xsd").write_text(OTHER)
    root = tmp_path / "a.xsd"
    root.write_text(importing("below/../below/other.xsd"))
    assert load(root)["properties"]["Stolen"] == {"type": "string"}


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/x.xsd", "jar:file:///x.jar!/x.xsd", "data:text/xml,x"])
def test_other_kinds_of_addresses_are_no_places(web, tmp_path, location):
    server = web()
    server.pages["/a.xsd"] = importing(location)
    assert "is no place that documents are read from" in refusal(f"{server.url}/a.xsd")
    root = tmp_path / "a.xsd"
    root.write_text(importing(location))  # beside a file this is a file's name
    assert "No such file or directory" in refusal(root)


# ---- the web ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
def test_a_wsdl_from_the_web_reads_no_file(web, tmp_path, how):
    secret = tmp_path / "other.xsd"
    secret.write_text(OTHER.replace("urn:other", "urn:t") if how == "xs:include" else OTHER)
    server = web()
    server.pages["/a.wsdl"] = importing(secret.as_uri(), how)
    text = refusal(f"{server.url}/a.wsdl")
    assert "a WSDL from the web names a file" in text
    assert "Id" in load(f"{server.url}/a.wsdl", allow=tmp_path)["properties"]


@pytest.mark.parametrize("how", HOWS)
def test_a_wsdl_from_the_web_asks_no_other_server(web, how):
    server, other = web(), web()
    other.pages["/s/other.xsd"] = OTHER.replace("urn:other", "urn:t") if how == "xs:include" else OTHER
    server.pages["/a.wsdl"] = importing(f"{other.url}/s/other.xsd", how)
    assert "it is on another server" in refusal(f"{server.url}/a.wsdl")
    assert other.seen == []
    load(f"{server.url}/a.wsdl", allow=[f"{other.url}/s"])
    assert other.paths == ["/s/other.xsd"]


def test_its_own_server_is_asked(web):
    server = web()
    server.pages |= {"/deep/a.wsdl": importing("../other.xsd"), "/other.xsd": OTHER}
    assert "Stolen" in load(f"{server.url}/deep/a.wsdl")["properties"]


@pytest.mark.parametrize(
    "path", ["/schemas-evil/x.xsd", "/x.xsd", "/schemas/../x.xsd", "/schemas/%2e%2e/x.xsd", "/schemas/%252e%252e/x.xsd"]
)
def test_what_is_allowed_is_a_folder_and_not_letters_of_a_name(web, path):
    server, other = web(), web()
    other.pages["*"] = OTHER
    server.pages["/a.wsdl"] = importing(other.url + path)
    assert "it is on another server" in refusal(f"{server.url}/a.wsdl", allow=f"{other.url}/schemas")
    assert other.seen == []


@pytest.mark.parametrize(
    "form",
    ["http://{own}@{other}/x.xsd", "http://{other}\\@{own}/x.xsd", "http://{other}#@{own}/x.xsd", "//{other}/x.xsd"],
)
def test_the_host_of_an_address_is_the_one_that_would_be_asked(web, form):
    """Parsers differ in what they take for the host."""
    server, other = web(), web()
    other.pages["*"] = OTHER
    own, foreign = (one.url.removeprefix("http://") for one in (server, other))
    server.pages["/a.wsdl"] = importing(form.format(own=own, other=foreign))
    assert "it is on another server" in refusal(f"{server.url}/a.wsdl")
    server.pages["/b.wsdl"] = (302, {"Location": form.format(own=own, other=foreign)}, b"")
    assert "redirects to another server" in refusal(f"{server.url}/b.wsdl")
    assert other.seen == []


def test_a_redirect_to_another_server_is_not_followed(web):
    server, other = web(), web()
    other.pages["*"] = XSD.format(inside="", field="")
    server.pages["/a.wsdl"] = (302, {"Location": f"{other.url}/b.wsdl"}, b"")
    text = refusal(f"{server.url}/a.wsdl")
    assert "redirects to another server" in text and f"{other.url}/b.wsdl" in text
    assert other.seen == []


def test_a_redirect_of_an_import_is_none_either(web):
    server, other = web(), web()
    other.pages["*"] = OTHER
    server.pages |= {"/a.wsdl": importing("o.xsd"), "/o.xsd": (307, {"Location": f"{other.url}/o.xsd"}, b"")}
    assert "redirects to another server" in refusal(f"{server.url}/a.wsdl")
    assert other.seen == []


def test_a_redirect_within_the_server_is_followed(web):
    server = web()
    server.pages["/a.wsdl"] = (301, {"Location": "/b.wsdl"}, b"")
    server.pages["/b.wsdl"] = XSD.format(inside="", field="")
    assert list(load(f"{server.url}/a.wsdl")["properties"]) == ["Id"]


def test_redirects_without_an_end_are_an_error(web):
    server = web()
    server.pages["/a.wsdl"] = (302, {"Location": "/a.wsdl"}, b"")
    assert "redirects without an end" in refusal(f"{server.url}/a.wsdl")
    assert len(server.seen) < 10


def test_credentials_go_to_the_wsdls_own_server_alone(web):
    server, other = web(), web()
    token, password = canary("wsdl-token"), canary("wsdl-password")
    other.pages["/o.xsd"] = OTHER
    server.pages["/a.wsdl"] = importing(f"{other.url}/o.xsd")
    load(f"{server.url}/a.wsdl", allow=other.url, auth=("me", password), headers={"X-Key": token})
    own, foreign = server.seen[0][2], other.seen[0][2]
    assert own["Authorization"] == "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
    assert own["X-Key"] == token
    assert "Authorization" not in foreign and "X-Key" not in foreign


def test_secrets_of_an_address_are_in_no_log(web, caplog):
    caplog.set_level(logging.DEBUG, logger="zeep")  # urllib3 has a line for each request, too: a run masks it
    server = web()
    token, password = canary("wsdl-url"), canary("wsdl-user")
    server.pages["*"] = XSD.format(inside='<xs:include schemaLocation="part.xsd"/>', field="")
    server.pages["/part.xsd"] = OTHER.replace("urn:other", "urn:t")
    load(f"http://me:{password}@127.0.0.1:{server.port}/a.wsdl?token={token}")
    (_, root, headers, _), (_, part, _, _) = server.seen
    assert (root, part) == (f"/a.wsdl?token={token}", "/part.xsd")
    assert headers["Authorization"] == "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
    assert "zeep" in caplog.text
    for secret in (token, password):
        assert secret not in caplog.text


def test_secrets_of_an_address_are_in_no_error(web):
    server = web()
    token = canary("wsdl-url")
    assert token not in refusal(f"{server.url}/a.wsdl?token={token}")
    assert token not in refusal(f"http://me:{token}@127.0.0.1:{server.port}/a.wsdl")
    server.pages["*"] = importing(f"http://127.0.0.1:9/x.xsd?key={token}")
    assert token not in refusal(f"{server.url}/a.wsdl")
    server.pages["*"] = XSD.format(inside="", field="<xs:schema/>")
    text = refusal(f"{server.url}/a.wsdl?token={token}")
    assert "XMLParseError: Unexpected element" in text and token not in text


# ---- document types, entities, XInclude -------------------------------------------------------------------------


def hostile(kind, server, secret):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    outside = {"file": secret.as_uri(), "web": f"{server.url}/e.txt"}
    doctype = {
        "subset": f'<!DOCTYPE xs:schema SYSTEM "{server.url}/x.dtd">',
        "public": f'<!DOCTYPE xs:schema PUBLIC "-//x//y" "{server.url}/x.dtd">',
        "file entity": f'<!DOCTYPE xs:schema [<!ENTITY e SYSTEM "{outside["file"]}">]>',
        "web entity": f'<!DOCTYPE xs:schema [<!ENTITY e SYSTEM "{outside["web"]}">]>',
        "parameter entity": f'<!DOCTYPE xs:schema [<!ENTITY % p SYSTEM "{outside["web"]}"> %p;]>',
        "laughs": f'<!DOCTYPE xs:schema [<!ENTITY l0 "ha">{laughs}<!ENTITY e "&l9;">]>',
        "plain": "<!DOCTYPE xs:schema>",
    }[kind]
    text = "&e;" if "<!ENTITY e " in doctype else "x"
    inside = f'<xs:annotation><xs:documentation source="{text}">{text}</xs:documentation></xs:annotation>'
    if kind.endswith("entity"):
        inside = inside.replace(f'source="{text}"', "")  # no outside entity may stand in an attribute
    return doctype + XSD.format(inside=inside, field="")


KINDS = ("subset", "public", "file entity", "web entity", "parameter entity", "laughs", "plain")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_document_type_is_refused_before_anything_is_made_of_it(web, tmp_path, kind, encoding):
    server = web()
    server.pages["*"] = b"<!ENTITY e 'got it'>"
    secret = tmp_path / "secret.txt"
    secret.write_text("got it")
    root = tmp_path / "a.xsd"
    root.write_bytes(hostile(kind, server, secret).encode(encoding))
    begun = time.perf_counter()
    text = refusal(root)
    assert time.perf_counter() - begun < 5
    assert "has a document type" in text and "got it" not in text
    assert server.seen == []


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_one_of_an_imported_document(web, tmp_path, kind):
    server = web()
    (tmp_path / "b.xsd").write_text(hostile(kind, server, tmp_path / "x"))
    root = tmp_path / "a.xsd"
    root.write_text(XSD.format(inside='<xs:include schemaLocation="b.xsd"/>', field=""))
    text = refusal(root)
    assert "has a document type" in text and "b.xsd" in text
    assert server.seen == []


def test_xinclude_is_not_followed(web, tmp_path):
    server = web()
    server.pages["*"] = OTHER
    secret = tmp_path / "other.xsd"
    secret.write_text(OTHER)
    for href in (f"{server.url}/x.xsd", secret.as_uri()):
        root = tmp_path / "a.xsd"
        root.write_text(XSD.format(inside=f'<xi:include href="{href}"/>', field=""))
        with pytest.raises(DeclarationError):
            load(root)
    assert server.seen == []


# ---- too much -----------------------------------------------------------------------------------------------------


def test_a_document_that_is_too_large_is_given_up(web, tmp_path):
    text = XSD.format(inside="", field="")
    server = web()
    server.pages["/a.wsdl"] = text + " " * 2**26
    assert "more than 67,108,864 bytes" in refusal(f"{server.url}/a.wsdl")
    root = tmp_path / "a.xsd"
    root.write_text(text + " " * 2**26)
    assert "64 MiB of documents, too many for a WSDL" in refusal(root)


def test_documents_that_are_too_large_together_are_given_up(tmp_path):
    much = f"<!--{'x' * 5_000_000}-->" * 5
    for name in "bcd":
        (tmp_path / f"{name}.xsd").write_text(OTHER.replace("urn:other", f"urn:{name}") + much)
    inside = "".join(f'<xs:import namespace="urn:{name}" schemaLocation="{name}.xsd"/>' for name in "bcd")
    root = tmp_path / "a.xsd"
    root.write_text(XSD.format(inside=inside, field=""))
    assert "64 MiB of documents" in refusal(root)


def test_very_many_documents_are_given_up(tmp_path):
    for number in range(510):
        (tmp_path / f"{number}.xsd").write_text(OTHER.replace("urn:other", f"urn:{number}"))
    inside = "".join(f'<xs:import namespace="urn:{n}" schemaLocation="{n}.xsd"/>' for n in range(510))
    root = tmp_path / "a.xsd"
    root.write_text(XSD.format(inside=inside, field=""))
    assert "more than 500 documents" in refusal(root)


def test_imports_that_never_end_are_given_up(web):
    server = web()

    def endless(path, body):
        number = int(path.removeprefix("/").removesuffix(".xsd"))
        inside = f'<xs:import namespace="urn:{number + 1}" schemaLocation="{number + 1}.xsd"/>'
        return XSD.format(inside=inside, field="").replace("urn:t", f"urn:{number}")

    server.pages["*"] = endless
    refusal(f"{server.url}/1.xsd")
    assert len(server.seen) <= 500


def test_documents_that_import_each_other_are_read_once(tmp_path):
    root = tmp_path / "a.xsd"
    root.write_text(importing("b.xsd"))
    (tmp_path / "b.xsd").write_text(
        OTHER.replace("<xs:simpleType", '<xs:import namespace="urn:t" schemaLocation="a.xsd"/><xs:simpleType')
    )
    assert "Stolen" in load(root)["properties"]


def test_deep_nesting_is_an_error(tmp_path):
    root = tmp_path / "a.xsd"
    root.write_text(XSD.format(inside="<xs:annotation>" * 5000 + "</xs:annotation>" * 5000, field=""))
    assert "can't be understood" in refusal(root)


# ---- what comes instead of a WSDL -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ((404, {}, b"no"), "answered 404. Is the address right?"),
        ((401, {}, b"no"), "answered 401. Are its credentials right"),
        ((200, {}, b"<!DOCTYPE html><html></html>"), "Is it an HTML page, such as a sign-in?"),
        ((200, {}, b"<html><body>Sign in</body></html>"), "is neither a WSDL nor an XSD: its root element is 'html'"),
        ((200, {}, b'{"a": 1}'), "is no XML"),
        ((200, {}, b""), "is no XML"),
        ((200, {}, b"<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>"), "can't be understood: XMLSyntaxError"),
        ((200, {"Content-Length": "1000"}, b"<a"), "broke off"),
    ],
)
def test_what_is_no_wsdl_is_one_error(web, page, said):
    server = web()
    server.pages["/a.wsdl"] = page
    assert said in refusal(f"{server.url}/a.wsdl")


def test_a_file_that_is_not_there(tmp_path):
    assert "No such file or directory" in refusal(tmp_path / "a.wsdl")
    assert "is a folder" in refusal(tmp_path)


def test_a_server_that_is_not_there(web):
    server = web()
    server.stop()
    assert "the connection was refused" in refusal(f"{server.url}/a.wsdl")


# ---- the cache ----------------------------------------------------------------------------------------------------


def test_a_cache_keeps_copies_for_as_long_as_it_is_told(web, tmp_path):
    server = web()
    server.pages |= {"/a.wsdl": importing("other.xsd"), "/other.xsd": OTHER}
    for _ in range(3):
        load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
    assert server.paths == ["/a.wsdl", "/other.xsd"]
    load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl", cache_seconds=0)
    assert len(server.seen) == 4
    for copy in (tmp_path / "wsdl").iterdir():
        copy.write_bytes(b"")  # as after a full disk
    assert "is no XML" in refusal(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")


def test_a_copy_from_the_future_is_fetched_anew(web, tmp_path):
    """After a clock went wrong it would else be good for ever."""
    server = web()
    server.pages["/a.wsdl"] = XSD.format(inside="", field="")
    load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
    (copy,) = (tmp_path / "wsdl").iterdir()
    os.utime(copy, (4_000_000_000, 4_000_000_000))
    load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
    load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
    assert server.paths == ["/a.wsdl", "/a.wsdl"]


def test_a_page_that_is_no_xml_is_not_kept(web, tmp_path):
    server = web()
    server.pages["/a.wsdl"] = "sign in, please"
    refusal(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
    server.pages["/a.wsdl"] = XSD.format(inside="", field="")
    assert load(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")


def test_a_cache_folder_that_can_not_be_written_is_an_error(web, tmp_path):
    server = web()
    server.pages["/a.wsdl"] = XSD.format(inside="", field="")
    (tmp_path / "wsdl").write_text("a file")
    assert "the cache folder" in refusal(f"{server.url}/a.wsdl", cache=tmp_path / "wsdl")
