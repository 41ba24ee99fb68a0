"""Config of a tap: reading files and environment, checking it, writing it back, keeping secrets out of sight."""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.config.atomic import replace_file
    from burler.config.environment import environment_prefix, variable_of
    from burler.config.forms import ConfigForm, ConfigSpec, parse_spec
    from burler.config.loading import Loaded, load, load_config
    from burler.config.secrets import looks_secret, mask, scrub, secret_values
    from burler.config.spec import check_config, known_keys
    from burler.config.writeback import ConfigFiles

__all__ = [
    "ConfigFiles",
    "ConfigForm",
    "ConfigSpec",
    "Loaded",
    "check_config",
    "environment_prefix",
    "known_keys",
    "load",
    "load_config",
    "looks_secret",
    "mask",
    "parse_spec",
    "replace_file",
    "scrub",
    "secret_values",
    "variable_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ConfigFiles": "writeback",
        "ConfigForm": "forms",
        "ConfigSpec": "forms",
        "Loaded": "loading",
        "check_config": "spec",
        "environment_prefix": "environment",
        "known_keys": "spec",
        "load": "loading",
        "load_config": "loading",
        "looks_secret": "secrets",
        "mask": "secrets",
        "parse_spec": "forms",
        "replace_file": "atomic",
        "scrub": "secrets",
        "secret_values": "secrets",
        "variable_of": "environment",
    },
)
