"""The list of mutations is one that can be run: ``make mutations`` says whether each is caught."""

from __future__ import annotations

import mutations


def test_each_mutation_can_be_made_and_says_what_it_breaks():
    listed = mutations.mutations()
    assert len({one.name for one in listed}) == len(listed) >= 30
    for one in listed:
        assert one.breaks.endswith("."), one.name
        assert one.made(mutations.ROOT), one.name
