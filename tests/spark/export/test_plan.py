"""Plans: what a table has by its numbers, and what that means for a lake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burler.lake import open_store
from support.internals import export_options, formats_base, lakefiles, spark_plan

pytestmark = pytest.mark.usefixtures("packages")


@pytest.fixture
def planned(lake):
    """The plan for stream ``users``, and the table once it was carried out."""

    def go(state=None, generation=None, continues=None):
        stream = lakefiles.load_stream(open_store(str(lake.root)), "tap-x", "users")
        if generation is not None:
            snapshot = replace(stream.snapshot, continues=continues or {})
            stream = replace(stream, generation=generation, snapshot=snapshot)
        plan = spark_plan.decide(stream, state or formats_base.TableState(), export_options.ExportOptions())
        return plan, formats_base.TableState(version=0, schema=plan.schema, numbers=plan.numbers)

    return go


def test_a_table_goes_on_where_a_manifest_was_made_from_another(lake, planned):
    lake.commit("users", [{"id": 1}])
    _, table = planned()
    lake.commit("users", [{"id": 2}])

    assert planned(table, "rebuilt")[0].kind == "rebuild"
    old = lake.manifest("users")["generation"]
    plan, table = planned(table, "rebuilt", {old: 1})
    assert (plan.kind, len(plan.files)) == ("upsert", 1)
    assert planned(table, "rebuilt", {old: 1})[0].kind == "skip"


def test_a_table_that_is_ahead_of_what_both_manifests_share_is_made_anew(lake, planned):
    lake.commit("users", [{"id": 1}])
    lake.commit("users", [{"id": 2}])
    _, table = planned()
    old = lake.manifest("users")["generation"]

    assert planned(table, "rebuilt", {old: 1})[0].kind == "rebuild"


def test_an_activation_without_rows_counts_more_than_an_earlier_one_of_a_later_version(lake, planned):
    """A clock that was set back, and then a version that nothing came with."""
    lake.commit("users", [{"id": 1}], version=1000, activate=1000)
    lake.commit("users", [], activate=500)

    plan, _ = planned()

    assert (plan.active.version, plan.active.rank) == (500, 1)
    assert plan.activated({}).active == plan.active
    assert plan.activated({1: 7}).active.version == 7, "what reading the file shows"
