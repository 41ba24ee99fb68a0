"""What people say of a tap."""

from __future__ import annotations

import json
from typing import Any

import pytest
from care_lakes import fill

from burler.errors import LakeError, UsageError
from burler.lake import care


def test_notes_are_changed_one_by_one_and_printed(lake: Any) -> None:
    fill(lake, 1)
    assert care.describe(lake.store, "tap-x").owner is None
    care.describe(lake.store, "tap-x", owner="crm team", documentation="https://docs.example.com")
    care.describe(lake.store, "tap-x", description="all customers", status_link="https://jobs.example.com/1")

    told = care.describe(lake.store, "tap-x")

    assert (told.owner, told.description) == ("crm team", "all customers")
    assert (told.documentation, told.link) == ("https://docs.example.com", "https://jobs.example.com/1")
    assert told.state == "complete"
    assert care.describe(lake.store, "tap-x", owner="", status_link="").owner is None
    assert care.describe(lake.store, "tap-x").link is None


def test_a_writer_keeps_what_people_said(lake: Any) -> None:
    fill(lake, 1)
    care.describe(lake.store, "tap-x", owner="crm team", status_link="https://jobs.example.com/1")
    fill(lake, 1)
    told = care.describe(lake.store, "tap-x")
    assert (told.owner, told.link, told.state) == ("crm team", "https://jobs.example.com/1", "complete")


def test_what_others_wrote_stays(lake: Any) -> None:
    fill(lake, 1)
    path = lake.path / "raw/singerlake.json"
    document = json.loads(path.read_bytes())
    document["ours"] = {"x": 1}
    document["taps"]["tap-x"] |= {"cost": 1.50, "status": "fine"}
    path.write_text(json.dumps(document))

    assert care.describe(lake.store, "tap-x", owner="me").state == "fine"

    document["taps"]["tap-x"]["owner"] = "me"
    assert json.loads(path.read_bytes()) == document
    assert care.describe(lake.store, "tap-x", status_link="https://x.example").state == "fine"


def test_unknown_taps_are_refused(lake: Any) -> None:
    fill(lake, 1)
    before = (lake.path / "raw/singerlake.json").read_bytes()
    for name in ("tap-y", "", "TAP-X"):
        with pytest.raises(UsageError, match="It has: tap-x"):
            care.describe(lake.store, name, owner="me")
    assert (lake.path / "raw/singerlake.json").read_bytes() == before


def test_without_the_file_a_tap_that_has_data_is_known(lake: Any) -> None:
    fill(lake, 1)
    (lake.path / "raw/singerlake.json").unlink()
    assert care.describe(lake.store, "tap-x").owner is None
    assert not (lake.path / "raw/singerlake.json").exists()
    assert care.describe(lake.store, "tap-x", owner="me").owner == "me"


def test_a_broken_file_is_an_error(lake: Any) -> None:
    fill(lake, 1)
    (lake.path / "raw/singerlake.json").write_text("{")
    with pytest.raises(LakeError, match="singerlake"):
        care.describe(lake.store, "tap-x", owner="me")
