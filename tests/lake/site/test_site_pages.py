"""What the pages say of a lake, also of one that is broken, bare or hostile."""

from __future__ import annotations

import datetime as dt
import json
import shutil

import pytest
from site_demo import page as rows_page
from site_demo import write
from site_reading import make_site

from burler.lake import LakeWriter, open_store, read_singerlake
from burler.singer.messages import Schema

BOOKS = "taps/tap-library/books.html"
NOW = dt.datetime(2024, 3, 18, 9, 30, tzinfo=dt.UTC)


def test_the_front_page_names_taps_owners_amounts_and_how_the_last_run_went(demo):
    text = demo.text()
    assert "Town library A raw lake of Singer data at ./lake" in text
    assert "Taps 2 Streams 7 Rows 62,042" in text
    assert "Reading room team <library@example.org>" in text
    assert "tap-git What happened in our repository. commits file_changes refs not said 3" in text
    assert "1 day ago 2024-03-17 06:08 UTC" in text
    assert "complete" in text
    assert "failed" in text


def test_a_tap_has_its_notes_links_and_streams(demo):
    text = demo.text("taps/tap-library/index.html")
    assert "started 2024-03-18 06:00 UTC , ended 2024-03-18 06:07 UTC" in text
    assert "https://example.org/jobs/41" in demo.read("taps/tap-library/index.html").links
    assert "books Every book that the library owns, lent out or not. 13 3 6,074 " in text
    assert "closed_days 4 1 0 0 bytes 0 none" in text


def test_a_stream_has_keys_bookmark_nested_fields_and_their_limits(demo):
    text = demo.text(BOOKS)
    assert "Keys isbn" in text
    assert "Bookmark updated_at" in text
    assert "publisher object or null Who brought it out." in text
    assert "publisher.address. country string at most 2 characters" in text
    assert "state string or null How it looks. one of new, good, worn, lost, null" in text
    assert "burler lake read ./lake --tap tap-library --stream books" in text
    assert text.index("isbn key") < text.index("title string") < text.index("state string")  # the tap's order


def test_versions_tell_in_words_what_changed(demo):
    text = demo.text(BOOKS)
    assert "Since v2: 1 added, 1 removed, 2 changed" in text
    assert "+ added state string, may be null" in text
    assert "− removed languages string" in text
    assert "~ changed price type: was number, now string; may not be null any more" in text
    assert "+ added publisher object, may be null, with 4 fields inside" in text
    assert "The first version." in text
    assert text.index("v3 ") < text.index("Since v2") < text.index("Since v1")


def test_an_older_version_has_a_page_of_its_own_and_its_schema_as_json(demo):
    text = demo.text("taps/tap-library/books.1.html")
    assert "This is an older schema" in text
    assert "languages string A JSON array, as text." in text
    line = json.loads((demo.out / "taps" / "tap-library" / "books.1.json").read_text())
    assert (line["type"], line["stream"]) == ("SCHEMA", "books")


def test_the_table_behind_a_plot_has_its_numbers(demo, tmp_path):
    text = demo.text(BOOKS)
    assert "Rows per day" in text
    assert "2024-03-17 31 11 KiB 1" in text
    marks = [part for part in demo.source(BOOKS).split("<") if part.startswith('text class="mark"')]
    assert [mark.rpartition(">")[2] for mark in marks] == ["v2", "v3"] * 2


def test_samples_stand_there_only_if_asked_for_and_come_with_a_warning(demo, lake, site_of):
    text = demo.text(BOOKS)
    assert "These are real rows of the lake and may hold personal data" in text
    assert '"The Sea & the Stars"' in text
    assert text.count("extracted 2024-03-17T") == 2
    value = "Ada from the third floor"
    properties = {"id": {"type": "integer"}, "note": {"type": "string"}}
    with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
        writer.schema(Schema("users", {"type": "object", "properties": properties}, ("id",)))
        writer.records(rows_page("users", [{"id": 1, "note": value}], NOW))
    site = site_of(lake.store)
    assert "Sample rows" not in site.text("taps/tap-x/users.html")
    assert not any(value in path.read_text() for path in site.out.rglob("*") if path.is_file())


def test_sample_values_are_escaped_cut_and_exact(lake, site_of):
    with LakeWriter(lake.store, "tap-x", emit_state=lambda state: None) as writer:
        writer.schema(Schema("users", {"type": "object"}, ()))
        line = (
            b'{"type":"RECORD","stream":"users","time_extracted":"2024-01-01T00:00:00Z","record":'
            b'{"big":12345678901234567890123.4500,"html":"<script>alert(1)</script>","fish":"\\ud83d\\udc1f",'
            b'"half":"\\ud83d","long":"' + b"y" * 100_000 + b'"}}\n'
        )
        writer.record_line("users", line, NOW)
    site = site_of(lake.store, samples=5)
    source = site.source("taps/tap-x/users.html")
    assert "12345678901234567890123.4500" in source
    assert "&lt;script&gt;alert(1)" in source
    assert "<script>alert" not in source
    assert "🐟" in source
    assert "\\ud83d" in source
    assert "y" * 290 in source
    assert "y" * 301 not in source


def test_the_search_index_knows_all_and_leads_to_places_that_are_there(demo, hostile):
    for site in (demo, hostile):
        index = site.index()
        for tap, page, _ in index["taps"]:
            assert (site.out / "taps" / page / "index.html").is_file(), tap
        for path, streams, _, anchor in index["fields"]:
            for number in streams:
                tap, stream, page, _ = index["streams"][number]
                where = f"taps/{index['taps'][tap][1]}/{page}.html#{anchor or 'f-' + path}"
                assert site.leads("index.html", where), (stream, where)
    fields = {(path, streams[0]) for path, streams, _, _ in demo.index()["fields"]}
    names = [stream[1] for stream in demo.index()["streams"]]
    assert ("publisher.address.city", names.index("books")) in fields
    assert [(d, [names[n] for n in s]) for path, s, d, _ in demo.index()["fields"] if path == "updated_at"] == [
        ("When anybody last touched the entry.", ["books"]),
        ("When it was lent, extended or brought back last.", ["loans"]),
    ]


def test_every_link_leads_somewhere_and_every_id_is_there_once(demo, hostile):
    for site in (demo, hostile):
        assert len(site.pages()) > 8
        assert site.broken_links() == []
        for page in site.pages():
            ids = site.read(page).ids
            assert len(ids) == len(set(ids)), page


def test_hostile_names_stay_inside_and_are_escaped(hostile):
    base = hostile.out.parent
    assert {path.name for path in base.iterdir()} == {"lake", "site"}
    assert all(path.resolve().is_relative_to(base) for path in hostile.out.rglob("*"))
    names = [path.relative_to(hostile.out).as_posix() for path in hostile.out.rglob("*") if path.is_file()]
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(part) < 100 for name in names for part in name.split("/"))
    for page in hostile.pages():
        assert hostile.read(page).tags.count("script") == 2, page
        assert "img" not in hostile.read(page).tags, page
        assert "\u202e" not in hostile.source(page)
    assert "\\u202eevil\\u0007" in hostile.text(hostile.page_of("\u202eevil\x07"))


def test_case_twins_get_pages_of_their_own(lake, site_of):
    write(lake, "Users")
    folder = lake.path / "raw" / "tap-x"
    shutil.copytree(folder / "Users", folder / "users")
    site = site_of(lake.store)
    pages = [path.name for path in (site.out / "taps" / "tap-x").glob("*.html") if path.name != "index.html"]
    assert len({page.lower() for page in pages}) == 2
    assert [entry[1] for entry in site.index()["streams"]] == ["Users", "users"]


def test_folders_of_other_writers_that_mean_the_same_name_are_told_apart(lake, site_of):
    write(lake, "a b")
    folder = lake.path / "raw" / "tap-x"
    shutil.copytree(folder / "a%20b", folder / "a b")
    site = site_of(lake.store)
    assert site.counted("stream") == 2
    assert sorted(entry[1] for entry in site.index()["streams"]) == ["a b", "a%20b"]


def test_without_manifests_and_catalogue_it_says_what_is_not_known(lake, site_of):
    write(lake, rows=7, at=NOW - dt.timedelta(days=3), name={"type": "string"})
    write(lake, rows=2, at=NOW - dt.timedelta(days=1), name={"type": "integer"})
    for path in [*lake.path.rglob("*.json")]:
        path.unlink()
    site = site_of(lake.store)
    text = site.text("taps/tap-x/users.html")
    assert "Rows unknown Size unknown Files 2" in text
    assert "none that can be read: the folder was listed" in text
    assert "No manifest says how many rows the files hold" in text
    assert "changed name type: was string, now integer" in text
    assert "Files per day" in text
    assert "Rows per day" not in text
    assert "Owner not said" in site.text("taps/tap-x/index.html")
    assert site.problems == []


def test_rows_of_files_without_statistics_are_said_to_be_missing(lake, site_of):
    write(lake, rows=7, at=NOW - dt.timedelta(days=3))
    write(lake, rows=2)
    path = lake.manifest_path()
    document = json.loads(path.read_text())
    del document["file_stats"][document["files"][0]]
    path.write_text(json.dumps(document))
    text = site_of(lake.store).text("taps/tap-x/users.html")
    assert "Rows at least 2 Size at least" in text
    assert "Rows and bytes of 1 of 2 files are not known" in text


def test_a_broken_manifest_is_told_and_the_rest_is_described(lake, site_of):
    write(lake, "users", rows=3)
    write(lake, "orders", rows=4)
    lake.manifest_path("users").write_text('{"versions": {}')
    site = site_of(lake.store)
    assert [where for where, _ in site.problems] == ["tap-x/users"]
    for page in ("index.html", "taps/tap-x/users.html"):
        assert "Could not be read" in site.text(page)
        assert "raw/tap-x/users/manifest.json is broken: no valid JSON" in site.text(page)
        assert str(lake.path) not in site.source(page)
    assert "could not be read whole" in site.text("taps/tap-x/index.html")
    assert "Files 1" in site.text("taps/tap-x/users.html")  # its folder was listed instead
    assert "Rows 4" in site.text("taps/tap-x/orders.html")
    assert "Could not be read" not in site.text("taps/tap-x/orders.html")


@pytest.mark.parametrize("name", ["singerlake.json", "tap-x/catalogue.json"])
def test_broken_notes_are_told_and_the_rest_is_described(lake, site_of, name):
    write(lake, rows=3)
    (lake.path / "raw" / name).write_text("[1, 2")
    site = site_of(lake.store)
    assert len(site.problems) == 1
    assert f"raw/{name} is no valid JSON" in site.text()
    assert "Rows 3" in site.text("taps/tap-x/users.html")


def test_a_torn_file_costs_the_samples_and_nothing_else(lake, site_of):
    write(lake, rows=3)
    (file,) = lake.files()
    file.write_bytes(file.read_bytes()[:40])
    assert site_of(lake.store).problems == []
    site = site_of(lake.store, samples=2)
    assert "truncated or corrupt" in site.text("taps/tap-x/users.html")
    assert "Rows 3" in site.text("taps/tap-x/users.html")


def test_a_stream_that_only_the_catalogue_knows_is_there_too(lake, site_of):
    write(lake)
    path = lake.path / "raw" / "tap-x" / "catalogue.json"
    document = json.loads(path.read_text())
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many."}}}
    metadata = [{"breadcrumb": [], "metadata": {"valid-replication-keys": ["n"], "replication-method": "INCREMENTAL"}}]
    document["streams"].append({"tap_stream_id": "planned", "schema": schema, "metadata": metadata})
    path.write_text(json.dumps(document))
    site = site_of(lake.store)
    assert "planned no data yet" in site.text("taps/tap-x/index.html")
    text = site.text("taps/tap-x/planned.html")
    assert "none yet: only the tap's catalogue names this stream" in text
    assert "n bookmark integer How many." in text
    assert "Replication INCREMENTAL" in text


def test_only_web_addresses_become_links(lake, site_of):
    write(lake)
    document = read_singerlake(lake.store)
    for number, link in enumerate(
        ("javascript:alert(1)", "https://user:pass@example.org/", "HTTP://x", "//x", " https://x")
    ):
        document["taps"][f"tap-{number}"] = {"documentation": link, "status": {"state": "running", "link": link}}
    document["taps"]["tap-good"] = {"documentation": "https://example.org/?a=1&b=<2>", "status": "complete"}
    (lake.path / "raw" / "singerlake.json").write_text(json.dumps(document, default=str))
    site = site_of(lake.store)
    links = [link for page in site.pages() for link in site.read(page).links if ":" in link or link.startswith("//")]
    assert {link for link in links if not link.startswith("data:")} == {"https://example.org/?a=1&b=<2>", "HTTP://x"}


def test_an_empty_lake_and_an_empty_name_have_a_page(lake, site_of):
    (lake.path / "raw").mkdir(parents=True)
    assert "This lake is empty." in site_of(lake.store).text()


def test_the_same_lake_gives_the_same_bytes(demo, tmp_path):
    lake = demo.out.parent / "lake"
    again = make_site(open_store(str(lake)), tmp_path / "again", samples=2, title="Town library")
    one, other = (
        {path.relative_to(site.out): path.read_bytes() for path in site.out.rglob("*") if path.is_file()}
        for site in (demo, again)
    )
    assert one == other


def test_a_lake_that_is_no_folder_is_described_as_well(site_of):
    class Held:
        store = open_store("memory://site-of-a-lake")

    write(Held, rows=3)
    site = site_of(Held.store)
    assert site.problems == []
    assert "Rows 3" in site.text("taps/tap-x/users.html")
    assert "burler lake read memory://site-of-a-lake --tap tap-x" in site.text("taps/tap-x/users.html")


def test_a_count_that_no_file_can_have_is_not_believed(lake, site_of):
    write(lake, rows=7)
    path = lake.manifest_path()
    path.write_text(path.read_text().replace('"records": 7', f'"records": {10**300}'))
    assert "Rows unknown" in site_of(lake.store).text("taps/tap-x/users.html")


def test_a_version_may_be_called_by_something_that_is_no_text(lake, site_of):
    write(lake, rows=7)
    path = lake.manifest_path()
    path.write_text(path.read_text().replace('"v1"', "17"))
    assert "17 " + next(iter(json.loads(path.read_text())["versions"])) in site_of(lake.store).text(
        "taps/tap-x/users.html"
    )


def test_a_tap_whose_name_was_cut_has_it_from_a_manifest(lake, site_of):
    tap = "tap-" + "x" * 300
    with LakeWriter(lake.store, tap, emit_state=lambda state: None) as writer:
        writer.schema(Schema("users", {"type": "object"}, ()))
    (lake.path / "raw/singerlake.json").unlink()
    pages = "".join(path.read_text() for path in site_of(lake.store).out.rglob("*.html"))
    assert tap in pages
