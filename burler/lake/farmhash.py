"""FarmHash Fingerprint64 in pure Python: the 64-bit name of a SCHEMA line.

The variant is the one called "na" in Google's FarmHash, which is what ``Fingerprint64`` is fixed to for
all time. It is written out here because the two packages that offer it install rival modules of
one name and lack wheels for most platforms. One hash per schema is made, so speed hardly matters
(about 10 ms for 64 KiB).
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_K0 = 0xC3A5C85C97CB3127
_K1 = 0xB492B66FBE98F273
_K2 = 0x9AE16A3B2F90404F
_BLOCK = struct.Struct("<8Q")

_Pair = tuple[int, int]


def fingerprint64(data: bytes) -> int:
    """FarmHash Fingerprint64 of ``data``: an unsigned 64-bit integer, the same on every platform."""
    size = len(data)
    if size <= 16:
        return _hash_0_to_16(data, size)
    if size <= 32:
        return _hash_17_to_32(data, size)
    if size <= 64:
        return _hash_33_to_64(data, size)
    return _hash_long(data, size)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _half_word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _rotate(value: int, bits: int) -> int:
    """Rotate right; ``value`` may be wider than 64 bits and is cut first."""
    value &= _MASK
    return (value >> bits | value << (64 - bits)) & _MASK


def _shift_mix(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _mix_pair(u: int, v: int, mul: int) -> int:
    """Two words into one, Murmur style."""
    a = _shift_mix(((u ^ v) & _MASK) * mul)
    return _shift_mix(((v & _MASK) ^ a) * mul) * mul & _MASK


def _hash_0_to_16(data: bytes, size: int) -> int:
    mul = (_K2 + size * 2) & _MASK
    if size >= 8:
        a = _word(data, 0) + _K2
        b = _word(data, size - 8)
        c = _rotate(b, 37) * mul + a
        d = (_rotate(a, 25) + b) * mul
        return _mix_pair(c, d, mul)
    if size >= 4:
        return _mix_pair(size + (_half_word(data, 0) << 3), _half_word(data, size - 4), mul)
    if size > 0:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[size - 1] << 2)
        return _shift_mix(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _hash_17_to_32(data: bytes, size: int) -> int:
    mul = (_K2 + size * 2) & _MASK
    a = _word(data, 0) * _K1
    b = _word(data, 8)
    c = _word(data, size - 8) * mul
    d = _word(data, size - 16) * _K2
    return _mix_pair(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, mul)


def _hash_33_to_64(data: bytes, size: int) -> int:
    mul = (_K2 + size * 2) & _MASK
    a = _word(data, 0) * _K2
    b = _word(data, 8)
    c = _word(data, size - 8) * mul
    d = _word(data, size - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix_pair(y, a + _rotate(b + _K2, 18) + c, mul)
    e = _word(data, 16) * mul
    f = _word(data, 24)
    g = (y + _word(data, size - 32)) * mul
    h = (z + _word(data, size - 24)) * mul
    return _mix_pair(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, mul)


def _weak_32(words: tuple[int, ...], a: int, b: int) -> _Pair:
    """Four words and a running pair into the next pair."""
    w, x, y, z = words
    a += w
    b = _rotate(b + a + z, 21)
    start = a
    a += x + y
    return (a + z) & _MASK, (b + _rotate(a, 44) + start) & _MASK


def _hash_long(data: bytes, size: int) -> int:
    """More than 64 bytes: whole blocks of 64, then the last 64 bytes once more with other factors."""
    x, y = 81, (81 * _K1 + 113) & _MASK
    z = _shift_mix(y * _K2 + 113) * _K2 & _MASK
    x = (x * _K2 + _word(data, 0)) & _MASK
    v: _Pair = (0, 0)
    w: _Pair = (0, 0)
    for at in range(0, (size - 1) // 64 * 64, 64):
        s = _BLOCK.unpack_from(data, at)
        x = _rotate(x + y + v[0] + s[1], 37) * _K1 ^ w[1]
        y = _rotate(y + v[1] + s[6], 42) * _K1 + v[0] + s[5]
        z = _rotate(z + w[0], 33) * _K1
        v = _weak_32(s[:4], v[1] * _K1, x + w[0])
        w = _weak_32(s[4:], z + w[1], y + s[2])
        x, y, z = z & _MASK, y & _MASK, x & _MASK
    mul = (_K1 + ((z & 0xFF) << 1)) & _MASK
    s = _BLOCK.unpack_from(data, size - 64)
    w = (w[0] + ((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotate(x + y + v[0] + s[1], 37) * mul ^ w[1] * 9
    y = _rotate(y + v[1] + s[6], 42) * mul + v[0] * 9 + s[5]
    z = _rotate(z + w[0], 33) * mul
    v = _weak_32(s[:4], v[1] * mul, x + w[0])
    w = _weak_32(s[4:], z + w[1], y + s[2])
    x, z = z, x
    return _mix_pair(
        _mix_pair(v[0], w[0], mul) + _shift_mix(y) * _K0 + z,
        _mix_pair(v[1], w[1], mul) + x,
        mul,
    )
