"""References to other documents: files beside, in shared folders, YAML, and http from a server on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import burler
from burler.errors import DeclarationError
from burler.schema import resolve_refs
from burler.testing import run_tap
from support.internals import documents
from support.servers import serving

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
WHERE = "stream 'a' (tap.py:5)"


def props(schema, **more):
    return {"type": "object", "properties": schema, **more}


@pytest.fixture
def folder(tmp_path):
    """Write files: ``folder({"a.json": schema, ...})`` gives the folder."""

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return tmp_path

    return write


def load(path, **more):
    return burler.json_file(path, **more).load(where=WHERE, config={})


def refusal(path, **more):
    with pytest.raises(DeclarationError) as caught:
        load(path, **more)
    text = str(caught.value)
    assert text.startswith(WHERE) and len(text.split("\n")) <= 3
    return text


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("b.json", "b.json"),
        ("b.json", "./b.json#"),
        ("b.json", "sub/../b.json"),
        ("sub/b.json", "sub/b.json"),
        ("../b.json", "../b.json"),
        ("my file.json", "my file.json"),
        ("my file.json", "my%20file.json"),
        ("100%.json", "100%25.json"),
        ("é ü.json", "%C3%A9 ü.json"),
        ("a#b.json", "a%23b.json"),
        ("b", "b"),
    ],
)
def test_files_beside(folder, name, reference):
    root = folder(
        {f"schemas/{name}": TEXT, "schemas/sub/x.json": {}, "schemas/a.json": props({"x": {"$ref": reference}})}
    )
    assert load(root / "schemas/a.json") == props({"x": TEXT})


def test_chains_through_files(folder):
    root = folder(
        {
            "a.json": props(
                {"x": {"$ref": "one/b.json#/definitions/t"}, "own": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": NUMBER}}
            ),
            "one/b.json": {"definitions": {"t": {"$ref": "../two/c.json#end", "title": "b"}}},
            "two/c.json": {"$defs": {"end": {"$anchor": "end", "items": {"$ref": "#/$defs/t"}}, "t": TEXT}},
        }
    )
    assert load(root / "a.json") == props({"x": {"items": TEXT, "title": "b"}, "own": NUMBER})


def test_absolute_paths_and_file_addresses(folder):
    root = folder({"x y/b.json": {"$defs": {"t": TEXT}}})
    path = root / "x y" / "b.json"
    for reference in (str(path), path.as_uri(), f"file://localhost{path.as_uri()[7:]}"):
        folder({"a.json": props({"x": {"$ref": f"{reference}#/$defs/t"}})})
        assert load(root / "a.json") == props({"x": TEXT})
    schema = props({"x": {"$ref": "b.json#/$defs/t"}})
    beside = path.with_name("of this tap.py")
    for base in (beside, str(beside), beside.as_uri()):
        assert resolve_refs(schema, source="x", base=base) == props({"x": TEXT})


def test_a_file_is_found_however_it_is_spelled(folder):
    root = folder({"b.json": {"$defs": {"t": TEXT}}, "sub/x.json": {}})
    (root / "link.json").symlink_to(root / "b.json")
    names = ["b.json", "./b.json", "sub/../b.json", "%62.json", (root / "b.json").as_uri(), "link.json"]
    folder({"a.json": props({str(i): {"$ref": f"{name}#/$defs/t"} for i, name in enumerate(names)})})
    assert load(root / "a.json") == props({str(i): TEXT for i in range(len(names))})


def test_an_id_that_names_a_web_address_does_not_hide_the_files_beside(folder):
    """Published schemas name themselves so; whoever keeps copies of them has them side by side."""
    root = folder(
        {
            "a.json": {"$id": "https://example.com/schemas/a.json", **props({"x": {"$ref": "b.json"}})},
            "b.json": {
                "$id": "https://example.com/schemas/b.json",
                "items": {"$ref": "#/$defs/t"},
                "$defs": {"t": TEXT},
            },
        }
    )
    assert load(root / "a.json") == props({"x": {"items": TEXT}})


def test_an_address_declared_in_another_file_is_known_once_that_is_read(folder):
    root = folder(
        {
            "a.json": props({"x": {"$ref": "b.json#/$defs/n"}, "y": {"$ref": "https://example.com/t"}}),
            "b.json": {"$defs": {"n": NUMBER, "t": {"$id": "https://example.com/t", **TEXT}}},
        }
    )
    assert load(root / "a.json") == props({"x": NUMBER, "y": TEXT})


def test_an_id_of_a_folder_changes_where_files_are(folder):
    root = folder(
        {"a.json": props({"x": {"$id": "sub/", "items": {"$ref": "b.json"}}}), "sub/b.json": TEXT, "b.json": NUMBER}
    )
    assert load(root / "a.json") == props({"x": {"items": TEXT}})


def test_shared_folders(folder):
    root = folder(
        {
            "tap/a.json": props(
                {"x": {"$ref": "x.json"}, "y": {"$ref": "deep/y.json#/$defs/y"}, "z": {"$ref": "z.json"}}
            ),
            "tap/x.json": TEXT,
            "one/x.json": NUMBER,
            "one/deep/y.json": {"$defs": {"y": {"items": {"$ref": "../z.json"}}}},
            "one/z.json": {"title": "one"},
            "two/z.json": {"title": "two"},
        }
    )
    out = load(root / "tap/a.json", shared=[root / "two", root / "one"])
    assert out == props({"x": TEXT, "y": {"items": {"title": "one"}}, "z": {"title": "two"}})
    assert load(root / "tap/a.json", shared=[root / "one"])["properties"]["z"] == {"title": "one"}
    inline = props({"z": {"$ref": "z.json"}})
    assert resolve_refs(inline, source="x", shared=str(root / "two")) == props({"z": {"title": "two"}})
    text = refusal(root / "tap/a.json", shared=root / "two")
    assert "$ref 'deep/y.json#/$defs/y' points to no file" in text
    assert all(str(root / place / "deep/y.json") in text for place in ("tap", "two"))
    assert f"the shared folder {root / 'three'} is not there" in refusal(root / "tap/a.json", shared=[root / "three"])


@pytest.mark.parametrize(
    "reference",
    ["../config.json", "%2e%2e/config.json", "sub/../../config.json", "/../config.json", "../shared2/c.json"],
)
def test_a_schema_without_a_file_stays_in_the_shared_folders(folder, reference):
    """What was made at run time, perhaps of what a server said, reads nothing but what is shared."""
    root = folder({"shared/z.json": TEXT, "shared/sub/y.json": NUMBER, "config.json": TEXT, "shared2/c.json": TEXT})
    with pytest.raises(DeclarationError, match=r"^x: \$ref '.*' leaves the shared folders"):
        resolve_refs(props({"a": {"$ref": reference}}), source="x", shared=[root / "shared"])
    inside = props({"a": {"$ref": "sub/../z.json"}, "b": {"$ref": "./sub/y.json"}, "c": {"$ref": "link.json"}})
    (root / "shared/link.json").symlink_to(root / "config.json")  # whoever shares the folder made it
    assert resolve_refs(inside, source="x", shared=[root / "shared"]) == props({"a": TEXT, "b": NUMBER, "c": TEXT})


def test_a_part_of_a_file(folder):
    root = folder(
        {"all.json": {"definitions": {"a/b": props({"x": {"$ref": "#/definitions/t"}}), "t": {"$anchor": "t", **TEXT}}}}
    )
    assert load(f"{root}/all.json#/definitions/a~1b") == props({"x": TEXT})
    assert load(f"{root}/all.json#t") == TEXT
    assert load(f"{root}/all.json#") == {}
    text = refusal(f"{root}/all.json#/definitions/b")
    assert "the part '#/definitions/b' of the document points to nothing: 'b' is not there" in text
    folder({"a#b.json": TEXT})
    assert load(f"{root}/a#b.json") == TEXT


def test_a_cycle_through_files_shows_their_names(folder):
    root = folder(
        {
            "contact.json": props({"x": {"$ref": "parts/address.json"}}),
            "parts/address.json": props({"owner": {"$ref": "../contact.json"}, "b": {"$ref": "b.json#/$defs/b"}}),
            "parts/b.json": {"$defs": {"b": {"items": {"$ref": "address.json"}}}},
        }
    )
    assert ": parts/address.json -> contact.json -> parts/address.json." in refusal(root / "contact.json")
    assert ": ../contact.json -> address.json -> ../contact.json." in refusal(root / "parts/address.json")
    folder({"parts/address.json": props({"x": {"$ref": "b.json#/$defs/nothing"}})})
    text = refusal(root / "contact.json")
    assert "$ref 'b.json#/$defs/nothing' (in parts/address.json) points to nothing: in parts/b.json, 'nothing'" in text
    assert "Reached by parts/address.json" in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "points to no file: looked for"),
        ("folder", "b.json is a folder"),
        ("pipe", "b.json is no regular file"),
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"{'streams': []}", "is not JSON"),
        ('{"streams": []}'.encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": "\xff"}', "is not JSON"),
        (b"<html>", "b.json is not JSON: line 1: invalid character (byte 0)"),
        (b'{\n"type": "object",\n}', "b.json is not JSON: line 3: "),
        (b'{\n"a": [1,\n2', "b.json is not JSON: line 3: Input data was truncated"),
        (b'{"a": NaN}', "is not JSON: line 1: "),
        (b'{"type": 1,\n"x": {"type": 2,\n"type": 3}}', "the key 'type' is there twice in one object"),
        (b'{"title": 1,\n"x": 1,\n "title" : 1}', "the key 'title' is there twice in one object (line 3)"),
        (b'{"x": [{"\\u0061": 1, "a": 2}]}', "the key 'a' is there twice in one object"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "points to a list, which is no schema"),
        (b"null", "points to null, which is no schema"),
        (b"5", "points to a number, which is no schema"),
    ],
)
def test_broken_files(folder, content, says):
    root = folder({"a.json": props({"x": {"$ref": "b.json"}})})
    if content == "folder":
        (root / "b.json").mkdir()
    elif content == "pipe":
        os.mkfifo(root / "b.json")
    elif content is not None:
        (root / "b.json").write_bytes(content)
    text = refusal(root / "a.json")
    assert (
        "$ref 'b.json'" in text and says in text and str(root) in text + str(root) * (content in (b"[]", b"null", b"5"))
    )


@contextlib.contextmanager
def nobody():
    """As a user who owns nothing: root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_files_that_may_not_be_read():
    with tempfile.TemporaryDirectory() as made:  # pytest's own folder is its user's alone
        root = Path(made)
        root.chmod(0o755)
        (root / "b").mkdir()
        (root / "a.json").write_text(json.dumps(props({"x": {"$ref": "b/c.json"}})))
        (root / "b/c.json").write_text(json.dumps(TEXT))
        with nobody():
            assert load(root / "a.json")
        for path in (root / "b/c.json", root / "b"):
            path.chmod(0)
            with nobody():
                assert "Permission denied" in refusal(root / "a.json")
        (root / "b").chmod(0o700)


@pytest.mark.parametrize(
    "reference",
    ["\0.json", "%00.json", "x" * 5000, "file://elsewhere/x.json", "a.json/b.json", "~root/x", "//host/x.json"],
)
def test_hostile_references(folder, reference):
    root = folder({"a.json": props({"x": {"$ref": reference}})})
    text = refusal(root / "a.json")
    assert "$ref" in text and "\0" not in text and len(text) < 2000


# ---- YAML ----------------------------------------------------------------------------------------


def test_yaml(folder):
    pytest.importorskip("yaml")
    text = """\
type: object
properties:
  x: {$ref: 'b.yml#/$defs/200'}
  day: &d {enum: [2024-01-02, no, on, 0x1F, 1:30, .nan, ~, true, -1, 1.5, 1e3, "1"]}
  again: *d
  more: {<<: *d, title: more}
"""
    root = folder({"a.yaml": text.encode(), "b.yml": b"$defs:\n  200: {type: string}\n"})
    day = {"enum": ["2024-01-02", "no", "on", "0x1F", "1:30", ".nan", None, True, -1, 1.5, 1000.0, "1"]}
    assert load(root / "a.yaml") == props({"x": TEXT, "day": day, "again": day, "more": {**day, "title": "more"}})


def test_yaml_merges(folder):
    """The first of several wins, a mapping's own key wins over all; what is merged comes first."""
    pytest.importorskip("yaml")
    text = """\
x-a: &a {title: a, minLength: 1}
x-b: &b {<<: {pattern: b}, title: b, maxLength: 2}
x-self: &self {<<: *self, title: self}
properties:
  one: {<<: [*a, *b]}
  two: {title: own, <<: *b}
  three: {<<: *a, <<: *b}
"""
    root = folder({"a.yaml": text.encode()})
    made = load(root / "a.yaml")
    assert made["properties"] == {
        "one": {"title": "a", "maxLength": 2, "minLength": 1, "pattern": "b"},
        "two": {"title": "own", "maxLength": 2, "pattern": "b"},
        "three": {"title": "a", "maxLength": 2, "minLength": 1, "pattern": "b"},
    }
    assert made["x-self"] == {"title": "self"}


def test_yaml_merges_of_merges_take_little_memory(folder):
    pytest.importorskip("yaml")
    lines = ["x0: &x0 {title: deep}"]
    lines += [f"x{n}: &x{n}\n  <<: [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 14)]
    root = folder({"a.yaml": "\n".join(lines).encode()})
    code = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\nimport burler\n"
        "print(burler.json_file(sys.argv[1]).load(where='x', config={})['x13'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root / "a.yaml")], capture_output=True, text=True, timeout=20
    )
    assert done.stdout.strip() == "{'title': 'deep'}", done.stderr


MERGED = (
    b"x: &x {"
    + b", ".join(b"a%d: 1" % n for n in range(2000))
    + b"}\n"
    + b"".join(b"b%d: {<<: *x}\n" % n for n in range(501))
)
LAUGHS = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 31))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: 1\nb: 2\na: 3\n", "is not YAML of JSON values: the key 'a' is there twice (line 3)"),
        (b"? [a]\n: 2\n", "a key is no text (line 1)"),
        (b"a: [1\nb: 2", "(line 2)"),
        (b"a: !!python/object:os.system {}", "could not determine a constructor"),
        (b"a: !!binary aGVsbG8=", "could not determine a constructor"),
        (b"a: \xff", "is not YAML"),
        (b"multipleOf: 1\nmaximum: 1e999", "the number 1e999 is none that JSON has (line 2)"),
        (b"a: -1e999", "the number -1e999 is none that JSON has (line 1)"),
        (b"a: !!float .nan", "the number .nan is none that JSON has (line 1)"),
        (b"a:\n  <<: 5", "'<<' takes a mapping or a list of mappings (line 2)"),
        (b"a: {<<: [{b: 1}, x]}", "'<<' takes a mapping or a list of mappings (line 1)"),
        (MERGED, "merge keys ('<<') bring in more than 1,000,000 values"),
        (LAUGHS, "more than 1,000,000 values"),
        (b"a: &a [*a]", "deeper than 64 levels|nested too deep|found unconstructable|more than"),
        (b"[" * 600 + b"]" * 600, "a.yaml is nested too deep."),
        (b"- " * 600 + b"1", "a.yaml is nested too deep."),
        (b"\n".join(b" " * n + b"a:" for n in range(600)), "a.yaml is nested too deep."),
        (b"[" * 3000, "nested too deep|nesting depth"),
        (b"a: " + b"[" * 100_000 + b"]" * 100_000, "nested too deep|nesting depth"),
        (b"- " * 100_000 + b"1", "nested too deep|nesting depth"),
        (b"{a: " * 30_000 + b"1" + b"}" * 30_000, "nested too deep|nesting depth"),
    ],
)
def test_broken_yaml(folder, content, says):
    pytest.importorskip("yaml")
    root = folder({"a.yaml": content})
    assert re.search(re.escape(says) if "|" not in says else says, refusal(root / "a.yaml"))


# ---- http ----------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch):
    """A server of documents: ``server.documents[path] = value``."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def answer(_asked):
        value = found.documents.get(found.paths[-1], 404)
        return (302, {"Location": value}, b"") if isinstance(value, str) else value

    with serving(answer) as found:
        found.documents = {}
        yield found


def test_http_is_fetched_only_when_asked_for(folder, server):
    server.documents["/b.json"] = TEXT
    root = folder({"a.json": props({"x": {"$ref": f"{server.url}/b.json"}})})
    text = refusal(root / "a.json")
    assert "points to an http address, which is fetched only if http=True is given" in text and not server.paths
    assert load(root / "a.json", http=True) == props({"x": TEXT})


def test_each_document_is_fetched_once(folder, server):
    server.documents |= {
        "/dir/b.json": {"$defs": {"t": {"items": {"$ref": "c.json#/$defs/t"}}, "u": {"$ref": "/top.json"}}},
        "/dir/c.json": {"$defs": {"t": {"$ref": "b.json#/$defs/u"}}},
        "/top.json": TEXT,
        "/old.json": "/dir/b.json",
    }
    fields = {
        "x": "dir/b.json#/$defs/t",
        "y": "dir/b.json#/$defs/u",
        "z": "old.json#/$defs/u",
        "v": "old.json#/$defs/t",
    }
    root = folder({"a.json": props({name: {"$ref": f"{server.url}/{tail}"} for name, tail in fields.items()})})
    out = load(root / "a.json", http=True)["properties"]
    assert out == {"x": {"items": TEXT}, "y": TEXT, "z": TEXT, "v": {"items": TEXT}}
    assert sorted(server.paths) == ["/dir/b.json", "/dir/b.json", "/dir/c.json", "/old.json", "/top.json"]


def test_a_base_of_http(server):
    server.documents["/dir/b.json"] = TEXT
    schema = props({"x": {"$ref": "b.json"}, "y": {"$ref": "a.json#/$defs/n"}}, **{"$defs": {"n": NUMBER}})
    assert resolve_refs(schema, source="x", base=f"{server.url}/dir/a.json", http=True) == props(
        {"x": TEXT, "y": NUMBER}
    )
    assert server.paths == ["/dir/b.json"]


def test_an_id_with_http_fetches_what_is_not_beside(folder, server):
    server.documents |= {"/s/b.json": NUMBER, "/s/c.json": NUMBER}
    document = {"$id": f"{server.url}/s/a.json", **props({"x": {"$ref": "b.json"}, "y": {"$ref": "c.json"}})}
    root = folder({"a.json": document, "b.json": TEXT})
    assert load(root / "a.json", http=True) == props({"x": TEXT, "y": NUMBER})
    text = refusal(root / "a.json")
    assert f"looked for {root}/c.json" in text and f"{server.url}/s/c.json" in text and "http=True" in text


@pytest.mark.parametrize("reference", ["file:///etc/hostname", "FILE:/etc/hostname", "inner.json"])
def test_a_fetched_document_names_no_file(folder, server, reference):
    """Neither by name, nor by an id that poses as a folder of this machine, nor in a shared folder."""
    root = folder(
        {"a.json": props({"x": {"$ref": f"{server.url}/b.json"}}), "shared/inner.json": TEXT, "inner.json": TEXT}
    )
    server.documents["/b.json"] = {"items": {"$ref": reference}}
    text = refusal(root / "a.json", http=True, shared=[root / "shared"])
    assert "points to a file, which a schema that came by http may not do" in text or "answered 404" in text
    server.documents["/b.json"] = {"$id": f"file://{root}/x.json", "items": {"$ref": "inner.json"}}
    text = refusal(root / "a.json", http=True)
    assert "which a schema that came by http may not do" in text


def test_a_fetched_document_reads_no_file_that_another_one_read(folder, server):
    root = folder(
        {
            "a.json": props({"x": {"$ref": "secret.json"}, "y": {"$ref": f"{server.url}/b.json"}}),
            "secret.json": {"default": "hush"},
            "named.json": props({"y": {"$ref": f"{server.url}/c.json"}}, **{"$id": "http://example.com/named.json"}),
        }
    )
    for name in ("secret.json", "a.json#/properties/x"):
        server.documents["/b.json"] = {"items": {"$ref": f"file://{root}/{name}"}}
        text = refusal(root / "a.json", http=True)
        assert "points to a file, which a schema that came by http may not do" in text and "hush" not in text
    # What declares a web address is known by it to all.
    server.documents["/c.json"] = {"items": {"$ref": "http://example.com/named.json#/type"}}
    assert "points to text, which is no schema" in refusal(root / "named.json", http=True)


def test_a_fetched_document_speaks_for_its_own_host(folder, server):
    root = folder({"b.json": TEXT})
    takes_over = {
        "$defs": {"f": {"$id": f"file://{root}/b.json", **NUMBER}, "o": {"$id": "http://127.0.0.1:1/o", **NUMBER}}
    }
    server.documents["/evil.json"] = {**takes_over, "type": "object"}
    folder({"a.json": props({"x": {"$ref": f"{server.url}/evil.json"}, "y": {"$ref": "b.json"}})})
    assert load(root / "a.json", http=True) == props({"x": {"type": "object"}, "y": TEXT})
    folder(
        {
            "a.json": props(
                {
                    "x": {"$ref": f"{server.url}/evil.json"},
                    "z": {"$ref": "http://127.0.0.1:1/o"},
                }
            )
        }
    )
    assert "GET http://127.0.0.1:1/o: the connection was refused" in refusal(root / "a.json", http=True)


def test_what_servers_do_wrong(folder, server, monkeypatch):
    def large(handler):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(65):
                handler.wfile.write(b" " * 2**20)

    def slow(handler):
        time.sleep(1)
        handler.end()

    def drips(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" " * 65536)
            handler.wfile.flush()
            time.sleep(0.05)

    def trickles(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "60000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(15):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.1)

    def trickles_headers(handler):
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 200 OK":
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                time.sleep(0.1)

    def breaks(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"{")
        handler.end()

    server.documents |= {
        "/html": b"<html>", "/500": 500, "/round": "/round", "/slow": slow, "/drips": drips, "/breaks": breaks,
        "/trickles": trickles, "/trickles_headers": trickles_headers,
        "/large": large, "/file": "file:///etc/hostname", "/list": b"[]",
    }  # fmt: skip
    for path, says in {
        "/nothing": "answered 404",
        "/500": "answered 500",
        "/html": "/html is not JSON",
        "/list": "points to a list",
        "/round": "it redirects in a circle",
        "/slow": "nothing came for 0.3 seconds",
        "/drips": "did not end within",
        "/trickles": "did not end within",
        "/trickles_headers": "did not end within",
        "/breaks": "can't be fetched",
        "/large": "more than 67,108,864 bytes",
        "/file": "can't be fetched",
        "/nothing?key=hunter2": "answered 404",
    }.items():
        address = server.url.replace("http://", "http://user:hunter2@")
        root = folder({"a.json": props({"x": {"$ref": address + path}})})
        with monkeypatch.context() as patience:
            if says.startswith(
                ("did not", "nothing came")
            ):  # only where time is what goes wrong: others take theirs on a busy machine
                patience.setattr(documents, "CONNECT_SECONDS", 0.3)
                patience.setattr(documents, "TOTAL_SECONDS", 0.7)
            text = refusal(root / "a.json", http=True)
        assert re.search(says, text), (path, text)
        assert "$ref 'http://127.0.0.1" in text and "hunter2" not in text
    root = folder({"a.json": props({"x": {"$ref": "http://127.0.0.1:1/x"}})})
    assert "the connection was refused" in refusal(root / "a.json", http=True)


def test_documents_without_end(folder, server):
    """A server that makes up a further document for each."""

    server.documents |= {f"/{i}": {"$ref": f"/{i + 1}"} for i in range(200)}
    root = folder({"a.json": props({"x": {"$ref": f"{server.url}/1"}})})
    assert "would be fetched document number 101" in refusal(root / "a.json", http=True)


# ---- json_file in a tap ---------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A tap in a package of its own, with schema files beside it; the current folder is elsewhere."""
    package = tmp_path / "some_tap_pkg"
    (package / "schemas").mkdir(parents=True)
    (package / "shared").mkdir()
    (package / "schemas" / "a.json").write_bytes(
        b"\xef\xbb\xbf" + json.dumps(props({"id": {"$ref": "id.json"}})).encode()
    )
    (package / "shared" / "id.json").write_text(json.dumps(TEXT))
    (package / "__init__.py").write_text(
        "import burler\ntap = burler.tap('tap-x')\n"
        "tap.schema('a', method=burler.json_file('schemas/a.json', shared=['shared']))\n"
        "@tap.sync('a')\ndef a():\n    yield {'id': 'x'}\n"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("some_tap_pkg")
    del sys.modules["some_tap_pkg"]


def test_a_schema_file_counts_from_its_module(module):
    run = run_tap(module.tap)
    assert run.records("a") == [{"id": "x"}]
    assert "$ref" not in json.dumps(run.messages)


def test_broken_schema_files(tmp_path):
    with pytest.raises(DeclarationError, match=r"^schema file .*no\.json: No such file"):
        burler.json_file(tmp_path / "no.json").load()
    bad = tmp_path / "bad.json"
    for content in (b"{", b"", b'{"a": "\xff"}'):
        bad.write_bytes(content)
        with pytest.raises(DeclarationError, match=r"^schema file .*bad\.json is not JSON"):
            burler.json_file(bad).load()
    assert refusal(tmp_path / "no.json").startswith(f"{WHERE}: schema file {tmp_path}/no.json: No such file")


@pytest.mark.parametrize("path", ["https://example.com/a.json", 5, None])
def test_what_is_no_path(path):
    with pytest.raises(DeclarationError, match=r"burler\.json_file"):
        burler.json_file(path)
