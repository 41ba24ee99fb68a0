"""``App``: a tap whose declarations are whole and can change no more; what runs, describes and sends a tap takes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from burler.config.forms import ConfigForm
from burler.config.loading import Loaded, load
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

    def load_config(self, files: Iterable[str | Path]) -> Loaded:
        """The config from files and the environment of this process; see ``burler.config.loading.load``."""
        return load(files, environment=os.environ, tap_name=self.name, form=self.config_form)
