"""Regular expressions that others wrote (``pattern`` and ``patternProperties`` of schemas), which never hold a run up.

Python's engine tries one way through a text after the other: ``^(a+)+$`` on forty letters takes it hours, in which
nothing else runs, no signal handler either. So an expression is looked at before it is used. How many steps Python's
engine takes at the most, by the length of the text, decides: where that is little it runs, and all ordinary
expressions stay with it. Else RE2 runs, which takes each letter of a text once. What RE2 can't say is not checked, and
told.
"""

from __future__ import annotations

import functools
import logging
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

_STEPS = 20_000_000
"""What Python's engine may take for one text: some 0.3 s."""
_QUICK_STEPS = 300
"""For each letter of a page of texts, which msgspec goes through in one go."""
_RE2_STEPS = 50_000_000
"""What RE2 may take: instructions times bytes, some 0.5 s where its quick way runs out of memory."""
_MOST_NODES = 10_000
_MOST_REPEATS = 64
"""Up to here a repeat is so many copies; above, one without an end."""

_IS_ONE = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})
"""What takes exactly one letter."""
_BEYOND = 1 << 128
"""Sets of letters are numbers with a bit for each in ASCII, and this one for all others."""
_ALL = (1 << 129) - 1
_MARK = 1 << 129


class Expression:
    """A regular expression; made by :func:`compile_pattern`.

    Attributes:
        pattern: as it was given.
        is_quick: whether Python's engine takes a few steps for each letter, whatever the text: it may run anywhere.
        longest: texts of up to so many characters are Python's engine's; 0 if none is.
    """

    __slots__ = ("_compiled", "_engines", "_told", "_tree", "is_quick", "longest", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tree, self._compiled = _parsed(pattern)
        steps = _steps(self._tree)
        self.is_quick = steps is not None and steps.degree == 1 and steps.factor <= _QUICK_STEPS
        self.longest = 0 if steps is None else int((_STEPS / steps.factor) ** (1 / steps.degree))
        self._engines: dict[bool, Any] = {}
        self._told = False

    def search(self, text: str) -> bool:
        """Whether it is found anywhere in a text, as ``re.search`` says; True where that is not checked."""
        if len(text) <= self.longest:
            return self._compiled.search(text) is not None
        data = text.encode(errors="surrogatepass")
        engine = self._engine(len(data) == len(text))
        if isinstance(engine, _Unsayable):
            reason = engine
        elif engine.programsize * len(data) > _RE2_STEPS:
            reason = _Unsayable("may take seconds, too", "Check shorter texts.")
        else:
            return engine.search(data) is not None
        if not self._told:
            self._told = True
            fact = f"a text of {len(text)} characters was not held against it"
            logger.warning("the regular expression %.60r: %s", self.pattern, _told(fact, reason))
        return True

    @property
    def gap(self) -> str | None:
        """What is not checked, why, and the cure, as sentences; None where all is (short of texts of megabytes)."""
        engine = None if self.is_quick else self._engine(True)
        if not isinstance(engine, _Unsayable):
            return None
        self._told = True  # by those who ask
        which = f"no text of more than {self.longest} characters" if self.longest else "no text"
        return _told(f"{which} is held against it", engine)

    def _engine(self, is_ascii: bool) -> Any:
        """RE2's form of it; what is in the way, as an ``_Unsayable``, where it has none."""
        if is_ascii not in self._engines:
            try:
                self._engines[is_ascii] = _re2(_Translation(is_ascii).expression(self._tree))
            except RecursionError:
                self._engines[is_ascii] = _Unsayable("knows none that is nested so deeply")
            except _Unsayable as reason:
                self._engines[is_ascii] = reason.with_traceback(None)
        return self._engines[is_ascii]


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Expression:
    """A regular expression that may be run on anything.

    Raises:
        re.error: it is none, as Python reads them.
    """
    return Expression(pattern)


def _parsed(pattern: str) -> tuple[Any, re.Pattern[str]]:
    from re import _parser  # type: ignore[attr-defined]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python may read in another way one day
            return _parser.parse(pattern), re.compile(pattern)
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error)) from None


# ---- how many steps Python's engine takes ------------------------------------------------------------


class _Next(NamedTuple):
    """What is left of an expression behind one of its places, and the steps it takes there at the most: ``factor``
    times the text's length to the power of ``degree``.

    ``first`` are the letters with which it may get on; 0 where it fits whatever comes, or in a place or two of the
    text only. With any other letter it fails within ``entry`` steps. ``is_sure``: it fits, whatever comes.
    """

    first: int
    entry: int
    degree: int
    factor: int
    is_sure: bool = False


_END = _Next(0, 0, 0, 0, True)
_END_OF_PART = _Next(0, 0, 0, 0)


class _Endless(Exception):
    """The steps are more than any power of the length, or nobody can tell."""


def _steps(tree: Any) -> _Next | None:
    """The steps of a search through a whole text; None where they have no bound that is of use."""
    flags = tree.state.flags
    try:
        whole = _Steps().sequence(tree, _END, flags)
    except (_Endless, RecursionError):
        return None
    # A search begins at each letter; behind ^ it ends there at once.
    again = 0 if _is_anchored(tree, flags) or not whole.degree else 1
    return whole._replace(degree=max(1, whole.degree + again), factor=whole.factor + 1)


def _is_anchored(nodes: Any, flags: int) -> bool:
    """Whether it fits at the beginning of a text only."""
    for op, given in nodes:
        name = str(op)
        if name == "SUBPATTERN":
            return _is_anchored(given[3], _flags(flags, given))
        if name == "BRANCH":
            return all(_is_anchored(option, flags) for option in given[1])
        return name == "AT" and _is_once(str(given), flags) and "BEGINNING" in str(given)
    return False


def _is_once(place: str, flags: int) -> bool:
    """Whether a place (``^``, ``$``) is one or two of any text."""
    return place.endswith("_STRING") or (place in ("AT_BEGINNING", "AT_END") and not flags & re.MULTILINE)


def _flags(flags: int, group: Sequence[Any]) -> int:
    added, dropped = int(group[1]), int(group[2])
    if added & (re.ASCII | re.UNICODE):  # one of the two holds
        flags &= ~(re.ASCII | re.UNICODE)
    return (flags | added) & ~dropped


class _Steps:
    """Goes through an expression from its end.

    Where a repeat may end at several letters, and what follows begins with one of its own letters, each may be the
    right one: all that follows is tried as often. Where it does not begin so, it fails at once at all but one.
    """

    def __init__(self) -> None:
        self._nodes = 0
        self._is_unclear = False  # some choice was met that the next letter does not decide
        self._loops = 0

    def sequence(self, nodes: Any, then: _Next, flags: int) -> _Next:
        for op, given in reversed(list(nodes)):
            self._nodes += 1
            if self._nodes > _MOST_NODES or then.factor > _STEPS:
                raise _Endless
            then = self._node(str(op), given, then, flags)
        return then

    def _node(self, name: str, given: Any, then: _Next, flags: int) -> _Next:
        if name in _IS_ONE:
            return _Next(_letters(name, given, flags), 1, then.degree, then.factor + 1)
        if name == "AT":
            if _is_once(str(given), flags):
                times = 2 if str(given) == "AT_END" else 1  # a $ also stands before a last line end
                return _Next(0, 1, then.degree, times * then.factor + 1)
            return then._replace(entry=then.entry + 1, factor=then.factor + 1, is_sure=False)
        if name == "SUBPATTERN":
            return self.sequence(given[3], then, _flags(flags, given))
        if name == "ATOMIC_GROUP":
            return self.sequence(given, then, flags)
        if name == "BRANCH":
            return self._any_of([self.sequence(option, then, flags) for option in given[1]])
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = given
            if len(body) == 1 and str(body[0][0]) in _IS_ONE:
                return self._run(_letters(str(body[0][0]), body[0][1], flags), least, int(most), then)
            return self._copies(body, least, int(most), then, flags)
        if name in ("ASSERT", "ASSERT_NOT"):
            return self._look(given[1], then, flags)
        if name == "GROUPREF" and not self._loops:
            return _Next(_ALL, then.entry + 1, max(1, then.degree), then.factor + 1)
        if name == "FAILURE":
            return _Next(0, 1, 0, 1)
        raise _Endless

    def _any_of(self, options: list[_Next]) -> _Next:
        first = 0
        for option in options:
            self._is_unclear |= bool(first & option.first)
            first |= option.first
        degree = max(option.degree for option in options)
        return _Next(first, sum(option.entry for option in options), degree, sum(option.factor for option in options))

    def _run(self, letters: int, least: int, most: int, then: _Next) -> _Next:
        """One letter of a set, several times."""
        if then.is_sure:  # it need not look how far it may go
            most = least
        first = letters | (0 if least else then.first)
        entry = 1 + (0 if least else then.entry)
        if most == 0:
            return then
        if least == most <= _MOST_REPEATS:
            return _Next(letters, 1, then.degree, then.factor + most)
        is_clear = not letters & then.first
        self._is_unclear |= not is_clear
        if most <= _MOST_REPEATS:
            ways = most - least + 1
            return _Next(
                first, entry, then.degree, most + (then.factor + ways * then.entry if is_clear else ways * then.factor)
            )
        if is_clear:
            return _Next(first, entry, max(1, then.degree), then.factor + then.entry + 1)
        return _Next(first, entry, then.degree + 1, then.factor + 1)

    def _copies(self, body: Any, least: int, most: int, then: _Next, flags: int) -> _Next:
        """Several letters, several times."""
        if most > _MOST_REPEATS:
            return self._loop(body, least, then, flags)
        made = then
        for number in range(most, 0, -1):
            made = self.sequence(body, made, flags)
            if number > least:
                made = self._any_of([made, then])
        return made

    def _loop(self, body: Any, least: int, then: _Next, flags: int) -> _Next:
        """Without an end: all is well where the next letter says at each place how it goes on."""
        unclear_before, self._is_unclear = self._is_unclear, False
        self._loops += 1
        once = self.sequence(body, _Next(_MARK, 1, 0, 1), flags)
        if once.first & (_MARK | then.first):  # it may take no letter; or what follows may
            raise _Endless
        again = _Next(once.first | then.first, once.entry + then.entry, 0, 0)
        inner = self.sequence(body, again, flags)
        self._loops -= 1
        if self._is_unclear:
            raise _Endless
        self._is_unclear = unclear_before
        factor = inner.factor + again.entry + then.factor
        if least:
            return _Next(once.first, once.entry, max(1, then.degree), factor)
        return _Next(again.first, again.entry, max(1, then.degree), factor)

    def _look(self, body: Any, then: _Next, flags: int) -> _Next:
        """Ahead or behind: once it fits it is not gone through in another way."""
        unclear_before = self._is_unclear
        looked = self.sequence(body, _END_OF_PART, flags)
        self._is_unclear = unclear_before
        factor = looked.factor + then.factor
        if not looked.degree:
            return _Next(then.first, looked.factor + then.entry, then.degree, factor)
        if self._loops:
            raise _Endless
        return _Next(_ALL, looked.factor + then.entry, max(looked.degree, then.degree), factor)


def _letters(name: str, given: Any, flags: int) -> int:
    """The letters that a node takes, or more."""
    if name == "ANY":
        return _ALL if flags & re.DOTALL else _ALL & ~_bits(10, 10)
    items = given if name == "IN" else [("LITERAL", given)]
    is_not = name == "NOT_LITERAL" or str(items[0][0]) == "NEGATE"
    taken = 0
    for op, value in items:
        kind = str(op)
        if kind == "LITERAL":
            taken |= _bits(value, value)
        elif kind == "RANGE":
            taken |= _bits(*value)
        elif kind == "CATEGORY":
            taken |= _of_category(str(value), flags)
    if flags & re.IGNORECASE:
        if is_not:
            return _ALL
        upper, lower = (_bits(ord(one), ord(last)) for one, last in ("AZ", "az"))
        taken |= (taken & upper) << 32 | (taken & lower) >> 32
        if taken & (upper | lower):  # K is also the sign of the unit Kelvin
            taken |= _BEYOND
        elif taken & _BEYOND:
            taken |= upper | lower
    return (_ALL & ~taken) | _BEYOND if is_not else taken


def _bits(first: int, last: int) -> int:
    inside = (1 << min(last + 1, 128)) - (1 << min(first, 128))
    return inside | (_BEYOND if last > 127 else 0)


def _of_category(category: str, flags: int) -> int:
    taken = 0
    for first, last in _members(category, bool(flags & re.ASCII), True):
        taken |= _bits(first, last)
    return taken if flags & re.ASCII and "_NOT_" not in category else taken | _BEYOND


# ---- the same for RE2 --------------------------------------------------------------------------------


class _Unsayable(Exception):
    """RE2 has no words for an expression.

    Args:
        fact: what RE2 does, or has not. cure: a sentence.
    """

    def __init__(self, fact: str, cure: str = "Write it without that, or without a repeat in a repeat.") -> None:
        super().__init__(fact)
        self.cure = cure


def _told(fact: str, reason: _Unsayable) -> str:
    return f"{fact}: Python could take hours for that, and RE2, which never does, {reason}. {reason.cure}"


_CATEGORIES = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}


@functools.cache
def _members(category: str, ascii_only: bool, below_128: bool) -> tuple[tuple[int, int], ...]:
    r"""The letters of ``\d``, ``\w`` or ``\s`` (or of their contraries), as Python's engine has them: first and last of
    each row of them.

    Args:
        ascii_only: under the flag ``a``.
        below_128: look at those of ASCII only.
    """
    letter = _CATEGORIES[category.rpartition("_")[2]]
    letter = letter.upper() if "_NOT_" in category else letter
    everything = array("I", range(128 if below_128 else 0x110000)).tobytes().decode("utf-32", "surrogatepass")
    found = re.finditer(rf"\{letter}+", everything, re.ASCII if ascii_only else 0)
    return tuple((match.start(), match.end() - 1) for match in found)


class _Translation:
    r"""An expression in RE2's words, letter by letter as Python means it: its ``\d`` is more than ASCII, its ``$`` may
    stand before a last line end.

    Args:
        is_ascii: it is for texts in ASCII: then ``\w`` is short, and so is the whole.
    """

    def __init__(self, is_ascii: bool) -> None:
        self._is_ascii = is_ascii

    def expression(self, tree: Any) -> str:
        """See the class.

        Raises:
            _Unsayable: RE2 has no words for it.
        """
        return self._sequence(tree, tree.state.flags, is_last=True)

    def _sequence(self, nodes: Any, flags: int, *, is_last: bool) -> str:
        if flags & re.IGNORECASE:
            raise _Unsayable("has another (?i)")
        end = len(nodes) - 1
        return "".join(self._node(str(op), given, flags, is_last and i == end) for i, (op, given) in enumerate(nodes))

    def _node(self, name: str, given: Any, flags: int, is_last: bool) -> str:
        """``is_last``: nothing of the expression stands behind it."""
        if name == "LITERAL":
            return _letter(given)
        if name == "NOT_LITERAL":
            return f"[^{_letter(given)}]"
        if name == "ANY":
            return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
        if name == "IN":
            return self._set(given, flags)
        if name == "AT":
            return self._place(str(given), flags, is_last)
        if name == "SUBPATTERN":
            return f"(?:{self._sequence(given[3], _flags(flags, given), is_last=is_last)})"
        if name == "BRANCH":
            return f"(?:{'|'.join(self._sequence(option, flags, is_last=is_last) for option in given[1])})"
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, body = given
            inner = self._sequence(body, flags, is_last=is_last and most == 1)
            upper = "" if str(most) == "MAXREPEAT" else int(most)
            return f"(?:{inner}){{{least},{upper}}}"
        raise _Unsayable(_UNKNOWN.get(name, "does not know all of its words"))

    def _set(self, items: Iterable[Any], flags: int) -> str:
        inside = ""
        for op, value in items:
            kind = str(op)
            if kind == "NEGATE":
                inside += "^"
            elif kind == "LITERAL":
                inside += _letter(value)
            elif kind == "RANGE":
                inside += f"{_letter(value[0])}-{_letter(value[1])}"
            else:
                members = _members(str(value), bool(flags & re.ASCII), self._is_ascii)
                inside += "".join(f"{_letter(first)}-{_letter(last)}" for first, last in members)
        return f"[{inside}]"

    def _place(self, place: str, flags: int, is_last: bool) -> str:
        if not _is_once(place, flags):
            if place in ("AT_BEGINNING", "AT_END"):
                return "(?m:^)" if place == "AT_BEGINNING" else "(?m:$)"
            raise _Unsayable(r"has another \b")
        if place != "AT_END":
            return r"\A" if place.startswith("AT_BEGINNING") else r"\z"
        if not is_last:
            raise _Unsayable("has another $ before the end")
        return r"(?:\n?\z)"


_UNKNOWN = {
    "ASSERT": "has no (?=...) and (?<=...)",
    "ASSERT_NOT": "has no (?!...) and (?<!...)",
    "GROUPREF": "has no references to groups",
    "GROUPREF_EXISTS": "has no references to groups",
    "ATOMIC_GROUP": "has no (?>...)",
    "POSSESSIVE_REPEAT": "has no *+ and ++",
}


def _letter(code: int) -> str:
    return f"\\x{{{code:x}}}"


def _re2(expression: str) -> Any:
    try:
        import re2
    except ImportError:
        raise _Unsayable("is not installed", "pip install google-re2") from None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        fact = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise _Unsayable(f"refuses it ({fact})", "Write it with fewer and smaller repeats.") from None


# ---- for the library jsonschema ----------------------------------------------------------------------


def keywords() -> dict[str, Callable[..., Iterator[Any]]]:
    """The keywords with regular expressions, for ``jsonschema.validators.extend``: its own run Python's engine. What
    they say of a value is left to those who look at the errors."""
    from jsonschema.exceptions import ValidationError

    def pattern(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not compile_pattern(wanted).search(value):
            yield ValidationError("pattern")

    def pattern_properties(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
        for expression, part in wanted.items() if validator.is_type(value, "object") else ():
            search = compile_pattern(expression).search
            for name in filter(search, value):
                yield from validator.descend(value[name], part, path=name, schema_path=expression)

    def additional_properties(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(value, "object"):
            return
        searches = [compile_pattern(expression).search for expression in schema.get("patternProperties", ())]
        known = schema.get("properties", {})
        further = [name for name in value if name not in known and not any(search(name) for search in searches)]
        if validator.is_type(part, "object"):
            for name in further:
                yield from validator.descend(value[name], part, path=name)
        elif not part and further:
            yield ValidationError("additionalProperties")

    return {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
