"""Whatever JSON comes as a catalog: findings, never a traceback. And invalid schemas, as another program sees them."""

import json
import random
from copy import deepcopy

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burler.spec import RULES, check_catalog, check_messages
from support.strategies import json_values

QUICK = settings(suppress_health_check=list(HealthCheck))
VOCABULARY = """
    streams stream tap_stream_id stream_alias schema key_properties replication_key replication_method metadata
    is_view breadcrumb properties items anyOf oneOf allOf not if type $ref #/properties/a # enum required pattern format
    default additionalProperties patternProperties dependencies definitions prefixItems minimum maxLength selected
    inclusion automatic unsupported forced-replication-method replication-key valid-replication-keys schema-name
    table-key-properties view-key-properties is-view row-count INCREMENTAL object array string null integer a A id (
"""
WORDS = [*VOCABULARY.split(), "\ud800"]  # half a surrogate pair: JSON can say it, UTF-8 can't
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.sampled_from(WORDS), st.just(10**4000)
)
KEYS = st.one_of(st.sampled_from(WORDS), st.text(max_size=3))
VALUES = json_values(
    LEAVES,
    KEYS,
    most=12,
)
GOOD = [json.loads(text) for rule in RULES.values() if rule.area == "catalog" for text in (rule.breaks, rule.keeps)]


def all_said(catalog):
    """The findings as text: each can be written."""
    found = check_catalog(catalog, config_tap_name="tap-a")
    for finding in found:
        assert finding.message and len(finding.message) < 1000
        json.dumps(finding.to_json(), ensure_ascii=False).encode()
    return found


@QUICK
@given(VALUES)
def test_any_value_is_survived(value):
    all_said(value)
    all_said({"streams": value})
    all_said({"streams": [value, value]})
    check_messages([{"type": "SCHEMA", "stream": value, "schema": value, "key_properties": value}])


@QUICK
@given(st.integers(0, len(GOOD) - 1), st.integers(0), VALUES, st.booleans())
def test_a_good_catalog_with_a_foreign_piece_in_it_is_survived(which, seed, value, is_key):
    """Close to a catalog each check is reached, where a value of any kind would stop at the first one."""
    catalog = deepcopy(GOOD[which])
    places = [(catalog, "streams")]
    for holder, key in places:
        inner = holder[key]
        keys = inner.keys() if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        places += [(inner, key) for key in keys]
    holder, key = random.Random(seed).choice(places)
    if is_key and isinstance(holder, dict):
        holder[str(random.Random(seed).choice(WORDS))] = value
    else:
        holder[key] = value
    all_said(catalog)


def test_a_number_that_python_does_not_write_out():
    huge = 10**5_000
    all_said({"streams": [{"tap_stream_id": huge, "schema": {"type": huge, "minLength": huge}, "metadata": huge}]})


def deep(inner, levels):
    for _ in range(levels):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


@pytest.mark.parametrize("levels", [99, 100, 101, 900, 20_000])
def test_deep_nesting(levels):
    found = all_said({"streams": [{"tap_stream_id": "a", "stream": "a", "schema": deep({"type": "int"}, levels)}]})
    codes = {finding.code for finding in found}
    assert ("C123" in codes) == (levels < 101)
    assert ("C125" in codes) == (levels >= 100)


@pytest.mark.parametrize("word", ["anyOf", "items", "not", "metadata"])
def test_lists_in_lists(word):
    value = []
    for _ in range(20_000):
        value = [value]
    all_said({"streams": [{"tap_stream_id": "a", "stream": "a", "schema": {word: value}, "metadata": value}]})


def test_many_references_cost_no_more_than_they_are():
    """Each points to the next: to follow each to its end would be to go ten million steps."""
    fields = {f"f{i}": {"$ref": f"#/properties/f{i + 1}"} for i in range(5_000)}
    fields["f5000"] = {"type": "string"}
    found = all_said({"streams": [{"tap_stream_id": "a", "stream": "a", "schema": {"properties": fields}}]})
    assert sum(finding.code == "C108" for finding in found) == 5_000


# ---- beside another program ----------------------------------------------------------------------

# Values that all drafts judge alike: draft 4 alone takes required: [] and true for a schema to be wrong.
NODES = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "int", ["null", "string"], [], ["null", "null"], ["a"], None, 5]),
            "required": st.sampled_from([["a"], True, "a", ["a", "a"], [1], None]),
            "enum": st.sampled_from([["a"], "a", None, {}]),
            "minimum": st.sampled_from([0, 1.5, "1", None, True]),
            "multipleOf": st.sampled_from([1, 0.01, 0, -1, "1"]),
            "maxLength": st.sampled_from([0, 5, -1, 1.5, "5", None]),
            "uniqueItems": st.sampled_from([True, False, "yes", None, 1]),
            "title": st.sampled_from(["a", None, 5]),
            "pattern": st.sampled_from(["^a", 5, None]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.one_of(
                st.dictionaries(st.sampled_from("ab"), inner, max_size=2), st.sampled_from([[], 5])
            ),
            "items": st.one_of(inner, st.lists(inner, min_size=1, max_size=2), st.just(5)),
            "anyOf": st.one_of(st.lists(inner, max_size=2), st.just({})),
            "not": inner,
            "additionalProperties": st.one_of(inner, st.booleans(), st.sampled_from([5, None, "a"])),
            "dependencies": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
        },
    ),
    max_leaves=4,
)


@settings(QUICK)
@given(NODES)
def test_what_jsonschema_refuses_is_found_and_nothing_else(node):
    """Its meta-schema of draft 4 is the judge."""
    stream = {"tap_stream_id": "a", "stream": "a", "schema": {"type": "object", "properties": {"field": node}}}
    found = [finding.code for finding in check_catalog({"streams": [stream]}) if finding.code in ("C123", "C125")]
    try:
        jsonschema.Draft4Validator.check_schema(stream["schema"])
    except jsonschema.SchemaError as error:
        assert found, error.message
    else:
        assert not found
