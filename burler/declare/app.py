"""``App``: a tap whose declarations are whole and can change no more; what runs, describes and sends a tap takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from burler.config.forms import ConfigForm
from burler.declare.spec import StreamSpec, UserFunction


@dataclass(frozen=True, slots=True)
class App:
    """What ``Tap.seal()`` gives.

    Attributes:
        place: ``file:line`` of the tap; it stands in errors.
        streams: all that are declared; a pattern such as ``public.*`` stands for streams that discovery finds.
        config_form: what the config must hold.
        client, discover: the functions of the tap itself, where it has them.
        tap: what the tap's own functions know it by. Nothing is asked of it but whether it is the same.
    """

    name: str
    place: str
    version: str | None
    description: str
    streams: Mapping[str, StreamSpec]
    config_form: ConfigForm = field(repr=False)
    client: UserFunction | None
    discover: UserFunction | None
    tap: object = field(repr=False)
