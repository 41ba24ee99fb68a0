"""The canonical SCHEMA line and its hash: how a schema version gets its folder name.

Line 1 of each data file is exactly the bytes that are hashed, so that
``zcat FILE | head -1`` proves the folder name without a JSON parser. The form is named ``burler-1``:
keys sorted by code point, no spaces, text as UTF-8, integral floats below 2^53 as integers, other
numbers exact. RFC 8785 can't serve: it refuses the 64-bit bounds that database taps put in their schemas.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from burler.errors import MessageError
from burler.singer.messages import Schema

CANONICAL_FORM = "burler-1"
ENCODINGS = ("base58", "base85")
"""How a lake may spell the hash in its folders: the first is the default, the second is the Singerlake text's own."""
HASH_LENGTH = 11
"""Characters of a folder name: 64 bits in base58 never need more."""
BASE85_LENGTH = 10

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_EXACT_FLOAT = 2**53
_PLAIN_DIGITS = 400
"""Above this many digits a Decimal keeps its exponent: 1E+999999999 must not fill the memory."""


def schema_line(message: Schema) -> bytes:
    """Line 1 of a data file: the SCHEMA message in canonical form, without a line end.

    Only the keys ``type, stream, schema, key_properties`` and, if there are any,
    ``bookmark_properties`` take part. The message is only read, never changed.

    Raises:
        MessageError: the schema holds something that JSON has no exact text for (NaN, infinity, a key
            that is no text, a lone surrogate); names the stream and the place.
    """
    try:
        return canonical_bytes(message.to_wire())
    except MessageError as error:
        raise MessageError(f"SCHEMA of stream '{message.stream}': {error}") from None


def schema_hash(line: bytes, encoding: str = "base58") -> str:
    """Folder name of a schema version: the line's Fingerprint64 in base58, 11 characters, or in ``base85``, 10."""
    in_base58, in_base85 = spellings(line)
    return in_base85 if encoding == "base85" else in_base58


def spellings(line: bytes) -> tuple[str, str]:
    """The hash of a line in base58, and the same 64 bits as the Singerlake text spells them: base85 (RFC 1924),
    big-endian, 10 characters."""
    number = fingerprint64(line)
    return _base58(number), _base85(number)


def other_spelling(text: str) -> str | None:
    """The same hash as the other encoding spells it; None if ``text`` is no hash in either."""
    if hash_encoding(text) == "base58":
        number = 0
        for character in text:
            number = number * 58 + _BASE58.index(character)
        return _base85(number) if number < 2**64 else None
    bits = _bits_of_base85(text)
    return None if bits is None else _base58(int.from_bytes(bits, "big"))


def _base85(number: int) -> str:
    return base64.b85encode(number.to_bytes(8, "big")).decode("ascii")


def _bits_of_base85(text: str) -> bytes | None:
    if len(text) != BASE85_LENGTH:
        return None
    try:
        return base64.b85decode(text)
    except ValueError:  # a character that it has not, or more than 32 bits in five
        return None


def _base58(number: int) -> str:
    """A 64-bit unsigned integer in the Bitcoin alphabet, padded with ``1`` to 11 characters."""
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text.rjust(HASH_LENGTH, _BASE58[0])


def hash_encoding(folder: str) -> str | None:
    """How a folder's name spells a hash, as far as it must be one: base85 has a mark, as 24 of 25 have; a plain word
    may be anything. None: the name is opaque (readers take any folder name as it is)."""
    if len(folder) == HASH_LENGTH and all(character in _BASE58 for character in folder):
        return "base58"
    return "base85" if _bits_of_base85(folder) is not None and not folder.isalnum() else None


def folder_mismatch(folder: str, line: bytes) -> str | None:
    """What a folder should be called where its name is a hash, and not that of ``line``; None where all is well, or
    where the name is opaque: of another writer's own rules."""
    encoding = hash_encoding(folder)
    if encoding is None:
        return None
    wanted = schema_hash(line, encoding)
    if folder == wanted or (encoding == "base58" and folder == _python_singerlake_hash(line)):
        return None
    return wanted


def _python_singerlake_hash(line: bytes) -> str | None:
    """The folder that python-singerlake gives a SCHEMA message: its own text of it, the hash's bytes the other way
    round. Its names may be shorter than 11 characters: those are opaque anyway."""
    try:
        text = json.dumps(json.loads(line), sort_keys=True)
    except (ValueError, RecursionError):
        return None
    return _base58(int.from_bytes(fingerprint64(text.encode()).to_bytes(8, "little"), "big"))


def canonical_bytes(value: Any) -> bytes:
    """Any JSON value in the form ``burler-1``, UTF-8.

    Raises:
        MessageError: a value without an exact JSON text; says where it is.
    """
    parts: list[str] = []
    try:
        _write(value, parts, "")
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError:
        raise MessageError("it holds half of a surrogate pair, which UTF-8 lacks. Fix the text.") from None
    except RecursionError:
        raise MessageError("it is nested too deeply, or refers to itself. Resolve it first.") from None


def _write(value: Any, parts: list[str], place: str) -> None:
    if value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, (int, float, Decimal)):
        parts.append(_number(value, place))
    elif isinstance(value, Mapping):
        _write_object(value, parts, place)
    elif isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        parts.append("[")
        for position, item in enumerate(value):
            if position:
                parts.append(",")
            _write(item, parts, f"{place}[{position}]")
        parts.append("]")
    else:
        raise MessageError(f"{place or 'the value'} is a {type(value).__name__}, which JSON does not have.")


def _write_object(value: Mapping[Any, Any], parts: list[str], place: str) -> None:
    for key in value:
        if not isinstance(key, str):
            raise MessageError(f"{place or 'an object'} has the key {key!r}; keys must be text.")
    parts.append("{")
    for position, key in enumerate(sorted(value)):
        if position:
            parts.append(",")
        parts.append(json.dumps(key, ensure_ascii=False))
        parts.append(":")
        _write(value[key], parts, f"{place}.{key}" if place else key)
    parts.append("}")


def _number(value: int | float | Decimal, place: str) -> str:
    try:
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return _float_text(float(value))
        return _decimal_text(value)
    except (ValueError, OverflowError) as error:
        raise MessageError(f"{place or 'the value'}: {error}") from None


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no JSON form. Remove it from the schema.")
    if value.is_integer() and abs(value) < _EXACT_FLOAT:
        return str(int(value))  # -0.0 becomes 0 here
    return repr(value)


def _decimal_text(value: Decimal) -> str:
    """The shortest JSON number; where a float has exactly this value, the float's own text.

    So a schema hashes alike whether its numbers were parsed as floats or as Decimals.
    """
    if not value.is_finite():
        raise ValueError(f"{value} has no JSON form. Remove it from the schema.")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if exponent != 0:
        exponent += len(text) - len(text.rstrip("0"))
        text = text.rstrip("0")
    if not text:
        return "0"
    minus = "-" if sign else ""
    if exponent >= 0 and len(text) + exponent <= 16 and int(text) * 10**exponent < _EXACT_FLOAT:
        return minus + text + "0" * exponent
    as_float = repr(float(value))
    if "inf" not in as_float and Decimal(as_float) == value:
        return as_float
    return minus + _shortest(text, exponent)


def _shortest(digits: str, exponent: int) -> str:
    """``digits`` x 10^``exponent`` in plain or exponent form, whichever is shorter; plain if equal."""
    power = len(digits) + exponent - 1
    scientific = digits[0] + ("." + digits[1:] if digits[1:] else "") + (f"e{power:+03d}" if power else "")
    if abs(exponent) > _PLAIN_DIGITS:
        return scientific
    if exponent >= 0:
        plain = digits + "0" * exponent
    elif len(digits) > -exponent:
        plain = digits[:exponent] + "." + digits[exponent:]
    else:
        plain = "0." + digits.rjust(-exponent, "0")
    return plain if len(plain) <= len(scientific) else scientific


# ---- FarmHash Fingerprint64 ------------------------------------------------------------------------
# The variant called "na" in Google's FarmHash, which ``Fingerprint64`` is fixed to for all time. It is written out here
# because the two packages that offer it install rival modules of one name and lack wheels for most platforms. One hash
# per schema is made, so speed hardly matters (about 10 ms for 64 KiB).

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
