"""What jsonschema found, in words: the key, the fact, never a value of the config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burler.config.problems import Problems, dotted
from burler.regex import compile_pattern
from burler.schema_tree import type_of
from burler.suggest import did_you_mean

WORDS = {
    "string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list", "null": "null",
}  # fmt: skip
_FORMATS = {
    "date-time": "an RFC 3339 date-time with a zone, like 2024-01-31T00:00:00Z",
    "date": "a date like 2024-01-31",
}


def kind_of(value: Any) -> str:
    """The type of a value, in words."""
    kind = type_of(value)
    return WORDS.get(kind, kind)


def say(error: Any, problems: Problems) -> None:
    """Note an error of jsonschema."""
    if error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                problems.lack((*error.absolute_path, key))
    elif error.validator in ("dependencies", "dependentRequired") and isinstance(error.validator_value, dict):
        _say_dependent(error, problems)
    elif error.validator == "additionalProperties":
        for sentence in _unknown(error):
            problems.add(sentence)
    elif (only := _meant(error)) is not None:
        for inner in only:
            say(inner, problems)
    else:
        problems.add(f"{_name(error)} {_fact(error)}")


def _name(error: Any) -> str:
    return f"config '{dotted(error.absolute_path)}'" if error.absolute_path else "config"


def _say_dependent(error: Any, problems: Problems) -> None:
    for key, others in error.validator_value.items():
        if key in error.instance:
            for other in [others] if isinstance(others, str) else others:
                if other not in error.instance:
                    path = dotted((*error.absolute_path, other))
                    problems.add(f"config lacks '{path}', which '{key}' asks for")


def _unknown(error: Any) -> list[str]:
    named = list(error.schema.get("properties", {}))
    patterns = list(error.schema.get("patternProperties", ()))
    said = []
    for key in error.instance:
        if key in named or any(compile_pattern(pattern).search(key) for pattern in patterns):
            continue
        said.append(f"config '{dotted((*error.absolute_path, key))}' is not known.{did_you_mean(key, named)}")
    return said


def _fact(error: Any) -> str:
    word = error.validator
    if word in ("anyOf", "oneOf"):
        return _branches(error)
    make = _FACTS.get(word)
    return make(error) if make is not None else f"does not fit '{word}' of the schema"


def _type(error: Any) -> str:
    kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    return f"must be {_either([WORDS.get(kind, str(kind)) for kind in kinds])}, not {kind_of(error.instance)}"


def _either(words: list[str]) -> str:
    words = list(dict.fromkeys(words))
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _enum(error: Any) -> str:
    shown = [_json(value) for value in error.validator_value]
    return f"must be one of {', '.join(shown[:20])}{' ...' if len(shown) > 20 else ''}"


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def _bound(words: str) -> Callable[[Any], str]:
    return lambda error: f"must be {words} {error.validator_value}"


def _minimum(error: Any) -> str:
    exclusive = error.schema.get("exclusiveMinimum") is True
    return f"must be {'above' if exclusive else 'at least'} {error.validator_value}"


def _maximum(error: Any) -> str:
    exclusive = error.schema.get("exclusiveMaximum") is True
    return f"must be {'below' if exclusive else 'at most'} {error.validator_value}"


def _count(words: str, what: str) -> Callable[[Any], str]:
    return lambda error: f"must have {words} {error.validator_value} {what}"


def _min_length(error: Any) -> str:
    return "must not be empty" if error.validator_value == 1 else _count("at least", "characters")(error)


def _min_items(error: Any) -> str:
    return "must not be empty" if error.validator_value == 1 else _count("at least", "values")(error)


def _grouped(error: Any) -> dict[Any, list[Any]]:
    """What is wrong in each branch of ``anyOf`` or ``oneOf``."""
    groups: dict[Any, list[Any]] = {}
    for inner in error.context:
        groups.setdefault(inner.schema_path[0] if inner.schema_path else 0, []).append(inner)
    return groups


def _meant(error: Any) -> list[Any] | None:
    """The errors of the one branch whose type the value has: that one was meant. None if there are several."""
    if error.validator not in ("anyOf", "oneOf"):
        return None
    groups = _grouped(error)
    right = [inner for inner in groups.values() if not any(one.validator == "type" and not one.path for one in inner)]
    return right[0] if len(right) == 1 and len(groups) == len(error.validator_value) else None


def _branches(error: Any) -> str:
    """Types if that is all the branches differ in; else what is wrong in each, in brackets."""
    groups = _grouped(error)
    if not groups or len(groups) < len(error.validator_value):
        return "fits more than one of the forms that the schema gives; it must fit exactly one"
    if all(len(inner) == 1 and inner[0].validator == "type" and not inner[0].path for inner in groups.values()):
        kinds = [inner[0].validator_value for inner in groups.values()]
        words = [WORDS.get(k, str(k)) for kind in kinds for k in (kind if isinstance(kind, list) else [kind])]
        return f"must be {_either(words)}, not {kind_of(error.instance)}"
    said = []
    for inner in groups.values():
        found = Problems()
        for one in inner:
            say(one, found)
        said.append("; ".join([f"lacks '{dotted(path)}'" for path in found.missing] + found.said))
    listed = " ".join(f"({i}) {text.replace('config ', '')}" for i, text in enumerate(said, 1))
    return f"fits none of the {len(said)} forms that the schema gives: {listed}"


_FACTS: dict[str, Callable[[Any], str]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda error: f"must be {_json(error.validator_value)}",
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _bound("above"),
    "exclusiveMaximum": _bound("below"),
    "multipleOf": _bound("a multiple of"),
    "minLength": _min_length,
    "maxLength": _count("at most", "characters"),
    "pattern": lambda error: f"must match the pattern {error.validator_value}",
    "format": lambda error: f"must be {_FORMATS.get(error.validator_value, error.validator_value)}",
    "minItems": _min_items,
    "maxItems": _count("at most", "values"),
    "uniqueItems": lambda _error: "must not hold a value twice",
    "minProperties": _count("at least", "keys"),
    "maxProperties": _count("at most", "keys"),
    "contains": lambda _error: "holds no value of the kind that must be among them",
    "not": lambda _error: "is of a form that the schema rules out",
}
