"""Fingerprint64 against published vectors and against Google's code where it is installed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.internals import farmhash

VECTORS = {
    "": 11160318154034397263,
    "a": 12917804110809363939,
    "abc": 2640714258260161385,
    "alphabet": -2427165924636348523,
    "1footrue": -1541654101129638711,
    "2applefalse": 2794438866806483259,
    "3true": -4880158226897771312,
    "Amazon Redshift": 8085098817162212970,
}


@pytest.mark.parametrize(("text", "expected"), VECTORS.items())
def test_published_vectors(text: str, expected: int) -> None:
    assert farmhash.fingerprint64(text.encode()) == expected % 2**64


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("farmhash").fingerprint64


def test_every_length_up_to_700_agrees_with_the_original(oracle) -> None:
    source = random.Random(14)
    for size in [*range(701), 4096, 4097, 65536, 100001]:
        data = source.randbytes(size)
        assert farmhash.fingerprint64(data) == oracle(data), size


@given(st.binary(max_size=300))
def test_any_bytes_agree_with_the_original(oracle, data: bytes) -> None:
    assert farmhash.fingerprint64(data) == oracle(data)
