"""Rows that come again in the next round, just as they went out: which are dropped, and which never are."""

from __future__ import annotations

import logging
from collections import Counter
from decimal import Decimal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import burler
from burler.testing import FakeClock, run_tap
from support.internals import repeats, shape

PREFIX, SUFFIX = b'{"type":"RECORD","record":', b',"time_extracted":"2024-01-01T00:00:00.000000Z"}\n'
SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "integer"}}}
encode = msgspec.json.Encoder(decimal_format="number").encode


class Stream:
    """One stream, written page by page as an outlet does."""

    def __init__(self, keeps="top", *, sorted_rows=True, key_properties=(), textual=None, form="form", **options):
        self.repeats = repeats.Repeats("at" if keeps == "top" else None, keeps=keeps, **options)
        self.sorted_rows, self.key_properties, self.textual = sorted_rows, key_properties, textual
        self.form = form
        self.asked = []  # rows that had to be made once more

    def write(self, rows):
        """A page; the rows that go out."""
        self.repeats.serve(
            "s",
            self.form,
            key_properties=self.key_properties,
            textual=self.textual,
            sorted_rows=self.sorted_rows,
        )
        keys = [row.get("at") for row in rows]
        output = shape.Output(bytearray(), PREFIX, SUFFIX)
        output.append(rows)
        lines = bytes(output.buffer)
        if self.repeats.holds or self.repeats.sifts:
            lines, repeated = self.repeats.sift(output.buffer, PREFIX, SUFFIX, keys)
            assert lines.count(b"\n") == len(rows) - repeated
        else:

            def again(places):
                self.asked += places
                return [encode(rows[i]) for i in places]

            self.repeats.passed(keys, len(rows), again)
        return [msgspec.json.decode(line)["record"] for line in bytes(lines).splitlines()]

    def round(self, *pages, whole=True):
        """A round of pages; the rows that go out."""
        self.repeats.begin()
        out = [row for page in pages for row in self.write(page)]
        if whole:
            self.repeats.end()
        return out


def row(number, at, **more):
    return {"id": number, "at": at, **more}


def rows(*pairs):
    return [row(number, at) for number, at in pairs]


# ---- rows at the top ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_a_boundary_row_that_comes_again_does_not_go_out_again(sorted_rows):
    stream = Stream(sorted_rows=sorted_rows)
    assert stream.round(rows((1, 5), (2, 7), (3, 7))) == rows((1, 5), (2, 7), (3, 7))
    assert stream.round(rows((2, 7), (3, 7))) == []
    assert stream.round(rows((2, 7), (3, 7), (4, 7), (5, 9))) == rows((4, 7), (5, 9))
    assert stream.round(rows((5, 9))) == []


def test_rows_that_are_not_at_the_boundary_go_out_however_often_they_come():
    stream = Stream(sorted_rows=False)
    stream.round(rows((1, 5), (2, 7)))
    assert stream.round(rows((1, 5), (2, 7))) == rows((1, 5))


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_a_row_with_another_value_goes_out(keeps):
    stream = Stream(keeps, sorted_rows=False)
    stream.round([row(1, 7, text="a")])
    assert stream.round([row(1, 7, text="b")]) == [row(1, 7, text="b")]
    assert stream.round([row(1, 7, text="b")]) == []


@pytest.mark.parametrize(
    "before, now", [(1, 1.0), (1, True), ("1", 1), (0.0, -0.0), (None, ""), (Decimal("1.50"), 1.5)]
)
def test_what_would_be_another_line_goes_out(before, now):
    for first, second in ((before, now), (now, before)):
        stream = Stream()
        stream.round([row(1, 7, value=first)])
        assert len(stream.round([row(1, 7, value=second)])) == 1


def test_a_field_that_is_null_and_one_that_is_missing_are_two_things():
    stream = Stream()
    stream.round([row(1, 7)])
    assert len(stream.round([row(1, 7, text=None)])) == 1


def test_what_would_be_the_same_line_does_not_go_out_again():
    stream = Stream()
    stream.round([row(1, 7, value=1.0)])
    assert stream.round([row(1, 7, value=Decimal("1.0"))]) == []


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_as_many_equal_rows_are_dropped_as_came_before_and_no_more(keeps):
    event = {"at": 7, "what": "login"}
    stream = Stream(keeps)
    assert stream.round([event, event]) == [event, event]
    assert stream.round([event, event]) == []
    assert stream.round([event], [event, event]) == [event]
    assert stream.round([event] * 3) == []
    assert stream.round([event]) == []
    assert stream.round([event, event]) == [event]  # two of the three were gone: one of these is another one


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_a_row_that_a_whole_round_did_not_bring_is_news_when_it_comes_once_more(keeps):
    """It may have been in another partition meanwhile, and something else went out for it."""
    stream = Stream(keeps)
    stream.round(rows((1, 7)))
    assert stream.round() == stream.round([]) == []
    assert stream.round(rows((1, 7))) == rows((1, 7))


def test_a_round_with_lower_rows_alone_forgets_the_others():
    stream = Stream(sorted_rows=False)
    stream.round(rows((1, 7)))
    assert stream.round(rows((2, 3))) == rows((2, 3))
    assert stream.round(rows((1, 7))) == rows((1, 7))


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_a_round_that_was_not_whole_forgets_nothing(keeps):
    stream = Stream(keeps)
    stream.round(rows((1, 7)))
    assert stream.round(rows((1, 7), (2, 9)), whole=False) == rows((2, 9))
    assert stream.round(rows((1, 7)), whole=False) == []
    assert stream.round(rows((1, 7), (2, 9))) == []
    assert stream.round(rows((1, 7), (2, 9))) == (rows((1, 7)) if keeps == "top" else [])


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_what_came_out_in_a_first_try_does_not_go_out_in_the_second(keeps):
    stream = Stream(keeps)
    stream.repeats.begin()
    assert stream.write(rows((1, 7), (2, 7))) == rows((1, 7), (2, 7))
    stream.repeats.begin()
    assert stream.write(rows((1, 7), (2, 7), (3, 7))) == rows((3, 7))
    stream.repeats.end()
    assert stream.round(rows((1, 7), (2, 7), (3, 7))) == []


def test_what_an_author_changes_in_a_row_after_it_is_out_does_not_change_what_went_out():
    stream = Stream(sorted_rows=False)
    mine = row(1, 7, tags=["a"])
    stream.repeats.begin()
    stream.write([mine])
    mine["tags"].append("b")
    stream.repeats.end()
    assert len(stream.round([mine])) == 1
    assert len(Stream().round([mine])) == 1
    assert stream.round([row(1, 7, tags=["a", "b"])]) == []


def test_rows_without_a_value_go_out_and_do_not_disturb():
    stream = Stream()
    assert len(stream.round([{"id": 0}, row(1, 7), {"id": 2, "at": None}, row(3, 7), {"id": 4}])) == 5
    assert stream.round([row(1, 7), {"id": 2, "at": None}, row(3, 7)]) == [{"id": 2, "at": None}]


def test_rows_that_did_not_go_out_are_not_known():
    stream = Stream()
    stream.repeats.begin()
    stream.write([])
    page = stream.repeats.page([encode(one) for one in rows((1, 7), (2, 7), (3, 8))], [7, 7, 8])
    stream.repeats.note(page, out={1}, taken=2)  # one was left out, and the last did not fit
    stream.repeats.end()
    assert stream.round(rows((1, 7), (2, 7), (3, 8))) == rows((1, 7), (3, 8))


def test_rows_in_a_new_form_are_news():
    stream = Stream()
    stream.round(rows((1, 7)))
    stream.form = "another"
    assert stream.round(rows((1, 7))) == rows((1, 7))
    assert stream.round(rows((1, 7))) == []


def test_pages_are_held_only_while_rows_of_the_boundary_may_come():
    stream = Stream()
    stream.repeats.begin()
    assert not stream.repeats.holds
    stream.write(rows((1, 5), (2, 7)))
    assert not stream.repeats.holds
    stream.repeats.end()
    stream.repeats.begin()
    assert stream.repeats.holds
    stream.write(rows((2, 7), (3, 8)))  # all that was known has come
    assert not stream.repeats.holds
    stream.repeats.end()
    stream.repeats.begin()
    stream.write(rows((4, 9)))  # the boundary row is gone, and sorted rows have passed it
    assert not stream.repeats.holds


def test_a_page_of_rows_at_one_value_is_not_made_twice_for_long():
    stream = Stream()
    day = [[row(100 * page + i, 7) for i in range(100)] for page in range(5)]
    assert len(stream.round(*day)) == 500
    assert len(stream.asked) == 100  # of the first page; the others were held
    assert stream.round(*day) == []


# ---- rows with key properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("keeps", ["top", "all"])
def test_a_row_that_goes_back_to_what_it_was_goes_out(keeps):
    """A target that has 'off' must hear of 'on', though 'on' went out before."""
    on, off = row(1, 7, status="on"), row(1, 7, status="off")
    stream = Stream(keeps, key_properties=("id",), sorted_rows=False)
    assert stream.round([on]) == [on]
    assert stream.round([off], whole=False) == [off]
    assert stream.round([on], whole=False) == [on]
    assert stream.round([on]) == []
    assert stream.round([off, on]) == [off, on]


@pytest.mark.parametrize("keys", [("id",), ("id", "part"), ("part",)])
def test_key_properties_of_any_kind(keys):
    stream = Stream("all", key_properties=keys)
    parts = [None, 1, 1.5, "1", True, ["a"], {"b": 1}, "é", 10**30]
    page = [{"id": i, "part": part} for i, part in enumerate(parts)]
    assert len(stream.round(page)) == len(page)
    assert stream.round(page) == []


# ---- all rows ------------------------------------------------------------------------------------------------


def test_all_rows_of_the_round_before_are_known_whatever_their_key():
    stream = Stream("all", sorted_rows=False)
    stream.round(rows((1, 5), (2, 7)), rows((3, 1)))
    assert stream.round(rows((3, 1), (1, 5), (2, 7), (4, 0))) == rows((4, 0))


def test_a_row_that_one_round_did_not_bring_is_news_when_it_comes_back():
    stream = Stream("all")
    stream.round(rows((1, 5), (2, 7)))
    stream.round(rows((2, 7)))
    assert stream.round(rows((1, 5), (2, 7))) == rows((1, 5))


@pytest.mark.parametrize("keeps", ["top", "all"])
@pytest.mark.parametrize("key_properties", [(), ("id",)])
def test_the_oldest_are_forgotten_beyond_a_number_and_one_warning_says_so(keeps, key_properties, caplog):
    stream = Stream(keeps, most=10, key_properties=key_properties)
    source = [row(i, 7) for i in range(15)]
    with caplog.at_level(logging.WARNING):
        stream.round(source)
        assert stream.round(source) == source[:5]
        stream.round(source)
    assert len([one for one in caplog.messages if "more than 10 rows may come again" in one]) == 1
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        Stream(keeps, most=15).round(source)
    assert caplog.messages == []


def test_rows_at_the_top_need_a_key():
    with pytest.raises(ValueError, match="told by their key"):
        repeats.Repeats(None, keeps="top")


# ---- against a plain model ------------------------------------------------------------------------------------


class Model:
    """What is to happen, said simply and slowly: of bodies, without a thought for time or memory."""

    def __init__(self, keeps, keyed):
        self.all, self.keyed = keeps == "all", keyed
        self.known, self.came, self.left, self.last = Counter(), [], Counter(), {}
        self.unseen = []  # rows of pages that were not looked at, since nothing could be dropped any more
        self.top = self.known_top = None
        self.open = False

    def begin(self):
        if self.open:
            self.known = self.known | self._at_top()
            if self.top is not None and (self.known_top is None or self.top > self.known_top):
                self.known_top = self.top
        self.open, self.top, self.came, self.unseen, self.left = True, None, [], [], Counter(self.known)

    def _at_top(self):
        self.last |= {one[0]: one for one in self.unseen if one[1] == self.top}
        return Counter(one for one in self.came if self.all or one[1] == self.top)

    def end(self):
        came = self._at_top()
        if self.all:
            self.known = came
        elif self.top is not None and (self.known_top is None or self.top >= self.known_top):
            self.known, self.known_top = came, self.top
        else:
            self.known = Counter()
        self.open = False

    def write(self, page):
        out = []
        looks = self.all or any(self.left.values())
        for item in page:
            body, owner = (item["id"], item.get("at"), item["text"]), item["id"]
            self.came.append(body)
            if body[1] is not None:
                self.top = body[1] if self.top is None else max(self.top, body[1])
            if self.left[body] and (not self.keyed or self.last.get(owner) == body):
                self.left[body] -= 1
            else:
                out.append(item)
                if looks:
                    self.last[owner] = body
            if not looks:
                self.unseen.append(body)
        return out


texts_of = st.sampled_from("ab")
pages_of = st.lists(
    st.lists(
        st.builds(lambda i, at, text: row(i, at, text=text), st.integers(0, 1), st.integers(0, 2), texts_of), max_size=4
    ),
    max_size=3,
)
rounds_of = st.lists(st.tuples(pages_of, st.booleans()), max_size=6)


FORTH_AND_BACK = [
    ([rows((0, 2))], False),
    ([rows((1, 1))], False),
    ([rows((1, 1), (1, 0))], True),
    ([rows((1, 1))], False),
]


@example(
    rounds=[([[{**one, "text": "a"} for one in page] for page in pages], whole) for pages, whole in FORTH_AND_BACK],
    keeps="top",
    sorted_rows=False,
    keyed=True,
)
@given(rounds=rounds_of, keeps=st.sampled_from(["top", "all"]), sorted_rows=st.booleans(), keyed=st.booleans())
def test_random_rounds_give_what_a_plain_model_gives(rounds, keeps, sorted_rows, keyed):
    stream = Stream(keeps, sorted_rows=sorted_rows, key_properties=("id",) if keyed else ())
    model = Model(keeps, keyed)
    for pages, whole in rounds:
        if sorted_rows:
            cuts = [len(page) for page in pages]
            flat = sorted((one for page in pages for one in page), key=lambda one: one["at"])
            pages = [[flat.pop(0) for _ in range(cut)] for cut in cuts]
        stream.repeats.begin()
        model.begin()
        for page in pages:
            assert stream.write(page) == model.write(page)
        if whole:
            stream.repeats.end()
            model.end()


# ---- keys without an order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[], [None], [1, "a"], [[1]], [float("nan"), 1.0], [{"a": 1}, {"b": 2}], [True]])
def test_keys_without_an_order_are_no_boundary(keys):
    stream = Stream(sorted_rows=False)
    page = [{"id": i, "at": key} for i, key in enumerate(keys)]
    assert len(stream.round(page)) == len(stream.round(page)) == len(keys)


# ---- rows that do not fit ---------------------------------------------------------------------------------------


def test_a_row_that_does_not_fit_counts_and_is_told_once_however_often_it_comes(caplog):
    """Another one counts, and one more than may be ends the stream."""
    rounds = []
    tap = burler.tap("tap-x")

    @tap.sync("s", key_properties="id", replication_key="at", schema=SCHEMA, on_bad_record="skip")
    def rows():
        rounds.append(1)
        more = [{"id": 3, "at": "x"}] if len(rounds) > 4 else []
        return [{"id": 1, "at": "x"}, {"id": 2, "at": []}, {"id": 9, "at": len(rounds)}, *more]

    with caplog.at_level(logging.WARNING):
        out = run_tap(tap, {"tail": True, "tail_max_rounds": 4, "max_bad_records": 2}, clock=FakeClock())
    assert not out.result.errors and len(rounds) == 4
    assert len([text for text in caplog.messages if "row id=1" in text]) == 1
    out = run_tap(tap, {"tail": True, "tail_max_rounds": 1, "max_bad_records": 2}, clock=FakeClock())
    assert "max_bad_records" in str(out.result.errors["s"])
