"""Regular expressions that others wrote (``pattern`` and ``patternProperties`` of schemas), which never hold a run up.

Python's engine tries one way through a text after the other: ``^(a+)+$`` on forty letters takes it hours, in which
nothing else runs, no signal handler either. So an expression is looked at before it is used: its steps are at most
``factor * length ** degree``, and texts for which that is little are Python's. Longer ones are RE2's, which takes each
letter once. What RE2 can't say is not checked, and told.
"""

from __future__ import annotations

import functools
import logging
import re
import warnings
from array import array
from collections.abc import Callable, Iterator
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

_STEPS = 20_000_000  # what Python's engine may take for one text: some 0.3 s
_QUICK_STEPS = 300  # for each letter of a page of texts, which msgspec goes through in one go
_RE2_STEPS = 50_000_000  # instructions times bytes: some 0.5 s where RE2's quick way runs out of memory
_MOST_REPEATS = 64  # above, a repeat counts as one without an end
_MOST_NESTED = 4  # so many repeats in one another are looked at
_WHY = "Python could take hours for that, and RE2, which never does,"


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
        factor, degree = _search_steps(self._tree)
        self.is_quick = degree == 1 and factor <= _QUICK_STEPS
        self.longest = int((_STEPS / factor) ** (1 / degree))
        self._engines: dict[str, Any] = {}
        self._told = False

    def search(self, text: str) -> bool:
        """Whether it is found anywhere in a text, as ``re.search`` says; True where that is not checked."""
        if len(text) <= self.longest:
            return self._compiled.search(text) is not None
        data = text.encode(errors="surrogatepass")
        engine = self._engine(_ASCII if len(data) == len(text) else _UNICODE)
        if not isinstance(engine, str) and engine.programsize * len(data) > _RE2_STEPS:
            engine = "may take seconds, too. Check shorter texts."
        if not isinstance(engine, str):
            return engine.search(data) is not None
        if not self._told:
            self._told = True
            fact = f"a text of {len(text)} characters was not held against it"
            logger.warning("the regular expression %.60r: %s: %s %s", self.pattern, fact, _WHY, engine)
        return True

    @property
    def gap(self) -> str | None:
        """What is not checked, why, and the cure, as sentences; None where all is (short of texts of megabytes)."""
        engine = None if self.is_quick else self._engine(_ASCII)
        if not isinstance(engine, str):
            return None
        self._told = True  # by those who ask
        which = f"no text of more than {self.longest} characters" if self.longest else "no text"
        return f"{which} is held against it: {_WHY} {engine}"

    def _engine(self, alphabet: str) -> Any:
        """RE2's form of it for texts of an alphabet; where it has none, why, and the cure, as a text."""
        if alphabet not in self._engines:
            try:
                self._engines[alphabet] = _re2(_in_re2(self._tree, self._tree.state.flags, alphabet, is_last=True))
            except RecursionError:
                self._engines[alphabet] = "knows none that is nested so deeply. Write it without a repeat in a repeat."
            except _Unsayable as reason:
                self._engines[alphabet] = str(reason)
        return self._engines[alphabet]


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Expression:
    """A regular expression that may be run on anything.

    Raises:
        re.error: it is none, as Python reads them.
    """
    return Expression(pattern)


def _parsed(pattern: str) -> tuple[Any, re.Pattern[str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python may read in another way one day
            return _parser.parse(pattern), re.compile(pattern)
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error)) from None


# ---- letters, places and flags -----------------------------------------------------------------------

_ONE = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})  # what takes exactly one letter
_PLACES = {"AT_BEGINNING": "start", "AT_BEGINNING_STRING": "start", "AT_END": "end", "AT_END_STRING": "end"}
_ASCII = "".join(map(chr, range(128)))
_UNICODE = "all letters"
_OTHERS = "٣\u2003é€"  # one of each kind beyond ASCII: in \d, in \s, further ones in \w, and in none
_ALL = frozenset(_ASCII + _OTHERS)


@functools.lru_cache(maxsize=1024)
def _rows(name: str, given: Any, flags: int, alphabet: str) -> list[str]:
    """The letters of an alphabet that a node takes, in rows of neighbours: Python's engine says so."""
    if alphabet == _UNICODE:
        alphabet = array("I", range(0x110000)).tobytes().decode("utf-32", "surrogatepass")
    state = _parser.State()
    node = _parser.SubPattern(state, [(getattr(_parser, name), given)])
    many = _parser.SubPattern(state, [(_parser.MAX_REPEAT, (1, _parser.MAXREPEAT, node))])
    found: list[str] = _compiler.compile(many, flags).findall(alphabet)
    return found


def _letters(name: str, given: Any, flags: int) -> frozenset[str]:
    """Those of ``_ALL`` that a node takes, or more: it may name letters beyond ASCII, which stand for all others."""
    named = [value for kind, value in given if str(kind) in ("LITERAL", "RANGE")] if name == "IN" else [given or 0]
    is_beyond = any((value[1] if isinstance(value, tuple) else value) > 127 for value in named)
    found = "".join(_rows(name, given, flags, _ASCII + _OTHERS))
    has_cases = flags & re.IGNORECASE and re.search("[a-z]", found)  # a K is also the sign of the unit Kelvin
    return frozenset(found + _OTHERS if is_beyond or has_cases else found)


def _place(at: Any, flags: int) -> str:
    """``start`` or ``end`` for a place that any text has once (a ``$`` also stands before a last line end), else ""."""
    return "" if flags & re.MULTILINE else _PLACES.get(str(at), "")


# ---- how many steps Python's engine takes ------------------------------------------------------------


class _Rest(NamedTuple):
    """An expression from one of its places on; Python's engine takes ``factor * length ** degree`` steps there at most.

    Attributes:
        first: the letters it may begin with; also ``start`` and ``end``, and "" for the end of the body of a repeat.
        entry: the steps it takes at most where the next letter is none of those; 0 at the end of the expression.
        ways: in how many ways it may be gone through, where the next letter does not tell which; if more than one and
            the degree is not 0, nobody knows.
        nested: the number of repeats around it.
    """

    first: frozenset[str] = frozenset()
    entry: int = 0
    degree: int = 0
    factor: int = 1
    ways: int = 1
    nested: int = 0


class _Endless(Exception):
    """The steps have no bound that is of use."""


def _search_steps(tree: Any) -> tuple[int, int]:
    """Factor and degree of a search through a whole text."""
    try:
        whole = _steps(tree, tree.state.flags, _Rest())
    except (_Endless, RecursionError):
        return 2 * _STEPS, 1
    is_anchored = whole.first == {"start"}  # a search begins at each letter; behind ^ it ends there at once
    degree = whole.degree + 1 if whole.degree and not is_anchored else max(1, whole.degree)
    return whole.factor + whole.entry, degree


def _steps(nodes: Any, flags: int, rest: _Rest) -> _Rest:
    """A sequence, gone through from its end."""
    for op, given in reversed(list(nodes)):
        rest = _node_steps(str(op), given, flags, rest)
        if rest.factor > _STEPS:
            raise _Endless
    return rest


def _node_steps(name: str, given: Any, flags: int, rest: _Rest) -> _Rest:
    """A node, and what stands behind it."""
    if name in _ONE:
        given = tuple(given) if name == "IN" else given
        return rest._replace(first=_letters(name, given, flags), entry=1, factor=rest.factor + 1)
    if name == "AT":
        place = _place(given, flags)
        if place:
            factor = (2 if place == "end" else 1) * rest.factor + 1
            return rest._replace(first=frozenset({place}), entry=1, factor=factor)
        return rest._replace(entry=rest.entry + 1, factor=rest.factor + 1)
    if name == "SUBPATTERN":
        return _steps(given[3], _compiler._combine_flags(flags, *given[1:3]), rest)
    if name == "BRANCH":
        return _either([_steps(option, flags, rest) for option in given[1]])
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _repeat_steps(given[0], int(given[1]), given[2], flags, rest)
    if name in ("ASSERT", "ASSERT_NOT"):  # once it fits it is not gone through in another way
        looked = _steps(given[1], flags, _Rest(nested=rest.nested))
        entry, factor = looked.factor + rest.entry, looked.factor + rest.factor
        if not looked.degree:
            return rest._replace(entry=entry, factor=factor)
        return _Rest(_ALL, entry, max(looked.degree, rest.degree), factor, 2 * rest.ways, rest.nested)
    if name == "GROUPREF":
        return _Rest(_ALL, rest.entry + 1, rest.degree + 1, rest.factor + 1, 2 * rest.ways, rest.nested)
    raise _Endless


def _either(options: list[_Rest]) -> _Rest:
    """The steps of all options; of the largest one, where the next letter tells which it is."""
    first = frozenset[str]().union(*(option.first for option in options))
    is_clear = sum(len(option.first) for option in options) == len(first)
    is_clear &= "start" not in first and not first >= {"end", "\n"}
    entry = sum(option.entry for option in options)
    return options[0]._replace(
        first=first,
        entry=entry,
        degree=max(option.degree for option in options),
        factor=max(option.factor for option in options) + entry if is_clear else sum(one.factor for one in options),
        ways=(max if is_clear else sum)(option.ways for option in options),
    )


def _repeat_steps(least: int, most: int, body: Any, flags: int, rest: _Rest) -> _Rest:
    """A repeat: what follows is tried once where the next letter tells whether it goes on, else behind each round."""
    if not rest.entry and len(body) == 1 and str(body[0][0]) in _ONE:
        most = least  # then the whole fits, whatever follows
    if most <= 1:
        options = [_steps(body, flags, rest)] if most else []
        return _either(options if least else [*options, rest])
    # One round. The second time it is known with which letters a further one may begin.
    checks = rest.entry if least < most else 0
    after = _Rest(rest.first | {""}, rest.entry + 1, factor=checks, nested=rest.nested + 1)
    if after.nested > _MOST_NESTED:
        raise _Endless
    once = _steps(body, flags, after)
    once = _steps(body, flags, after._replace(first=once.first | after.first, entry=once.entry + rest.entry))
    may_be_empty = any(len(letter) != 1 for letter in once.first)
    if may_be_empty or (once.ways > 1 and (once.degree or most > _MOST_REPEATS)):
        raise _Endless
    is_clear = least == most or once.first.isdisjoint(rest.first)
    if most > _MOST_REPEATS:
        degree, factor = max(1, rest.degree + (not is_clear)), once.factor + rest.factor
        ways = 1 if is_clear else 2
    else:
        ways = once.ways**most * (1 if is_clear else most - least + 1)
        degree, factor = max(once.degree, rest.degree), most * once.ways**most * once.factor + ways * rest.factor
    first, entry = (once.first, once.entry) if least else (once.first | rest.first, once.entry + rest.entry)
    return _Rest(first, entry, degree, factor, ways * rest.ways, rest.nested)


# ---- the same for RE2 --------------------------------------------------------------------------------


class _Unsayable(Exception):
    """RE2 has no words for an expression: what it does, or has not, and the cure."""


def _in_re2(nodes: Any, flags: int, alphabet: str, *, is_last: bool) -> str:
    r"""A sequence in RE2's words, letter by letter as Python means it: its ``\d`` is more than ASCII, its ``$`` may
    stand before a last line end.

    Args:
        alphabet: of the texts it is for: for those in ASCII ``\w`` is short, and so is the whole.
        is_last: nothing of the expression stands behind it.

    Raises:
        _Unsayable: RE2 has no words for it.
    """
    end = len(nodes) - 1
    words = (_node_in_re2(str(op), to, flags, alphabet, is_last and i == end) for i, (op, to) in enumerate(nodes))
    return "".join(words)


def _node_in_re2(name: str, given: Any, flags: int, alphabet: str, is_last: bool) -> str:
    if name in _ONE:
        rows = _rows(name, tuple(given) if name == "IN" else given, flags, alphabet)
        inside = "".join(f"\\x{{{ord(row[0]):x}}}-\\x{{{ord(row[-1]):x}}}" for row in rows)
        return f"[{inside}]" if inside else r"[^\x{0}-\x{10ffff}]"
    if name == "AT" and _place(given, flags) == "start":
        return r"\A"
    if name == "AT" and _place(given, flags) and (is_last or str(given) == "AT_END_STRING"):
        return r"\z" if str(given) == "AT_END_STRING" else r"(?:\n?\z)"
    if name == "SUBPATTERN":
        inner = _in_re2(given[3], _compiler._combine_flags(flags, *given[1:3]), alphabet, is_last=is_last)
        return f"(?:{inner})"
    if name == "BRANCH":
        return f"(?:{'|'.join(_in_re2(option, flags, alphabet, is_last=is_last) for option in given[1])})"
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, body = given
        inner = _in_re2(body, flags, alphabet, is_last=is_last and most == 1)
        return f"(?:{inner}){{{least},{'' if most is _parser.MAXREPEAT else most}}}"
    fact = _UNSAYABLE.get(name, "does not know all of its words")
    raise _Unsayable(f"{fact}. Write it without that, or without a repeat in a repeat.")


_UNSAYABLE = {
    "AT": r"has another \b, another (?m), and another $ before the end",
    "ASSERT": "has no (?=...) and (?<=...)",
    "ASSERT_NOT": "has no (?!...) and (?<!...)",
    "GROUPREF": "has no references to groups",
    "POSSESSIVE_REPEAT": "has no *+ and ++",
}


def _re2(expression: str) -> Any:
    try:
        import re2
    except ImportError:
        raise _Unsayable("is not installed. pip install google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        fact = f"refuses it ({error.args[0].decode(errors='replace')})"
        raise _Unsayable(f"{fact}. Write it with fewer and smaller repeats.") from None


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
