"""STATEs and rows in any order: B302 and B303 are told just where a row comes behind a STATE that has passed it."""

from hypothesis import given
from hypothesis import strategies as st
from said import codes, row, schema, state

MESSAGES = st.lists(st.tuples(st.sampled_from(["row", "state", "row"]), st.integers(0, 9)), max_size=12)
FORMS = st.sampled_from(
    [
        ("2024-01-{:02}T00:00:00Z", "2024-01-{:02}T00:00:00Z"),
        ("2024-01-{:02}T00:00:00Z", "2024-01-{:02}"),
        ("2024-01-{:02}T02:00:00+02:00", "2024-01-{:02}T00:00:00.000000Z"),
        ("{}", "{}"),
    ]
)


def as_at(number, form):
    return form.format(number + 1)


@given(MESSAGES, FORMS, st.one_of(st.none(), st.integers(0, 9)))
def test_rows_behind_a_state(messages, forms, begun):
    fields = {"id": {"type": "integer"}, "at": {"type": "string"}}
    of_row, of_state = forms
    written, kept, lost = [], [], False
    for number, (kind, value) in enumerate(messages):
        if kind == "row":
            written.append(row(number, as_at(value, of_row)))
            lost = lost or (any(value < one for one in kept) and (begun is None or value >= begun))
        else:
            written.append(state(a=as_at(value, of_state)))
            kept.append(value)
    given = None if begun is None else state(a=as_at(begun, of_state))["value"]
    told = codes(schema(fields=fields), *written, state=given)
    assert bool({"B302", "B303"} & set(told)) == lost


@given(MESSAGES, st.sampled_from([(1704067200, 86400), (1704067200000, 86400000)]), st.booleans())
def test_times_as_numbers_and_as_text_are_the_same(messages, epoch, rows_are_numbers):
    """Rows have numbers and STATEs text, or the other way round."""
    began, step = epoch
    kind = {"type": "integer"} if rows_are_numbers else {"type": "string"}

    def number(value):
        return began + value * step

    def text(value):
        return f"2024-01-{value + 1:02}T00:00:00Z"

    of_row, of_state = (number, text) if rows_are_numbers else (text, number)
    plain = schema(fields={"id": {"type": "integer"}, "at": kind})
    written, same = [plain], [plain]
    for place, (word, value) in enumerate(messages):
        written.append(row(place, of_row(value)) if word == "row" else state(a=of_state(value)))
        same.append(row(place, of_row(value)) if word == "row" else state(a=of_row(value)))
    if not any(word == "row" for word, _value in messages):
        return
    first_row = next(at for at, (word, _value) in enumerate(messages) if word == "row")
    del written[1 : first_row + 1], same[1 : first_row + 1]
    assert codes(*written) == codes(*same)
