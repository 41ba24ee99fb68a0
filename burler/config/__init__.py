"""Config of a tap: reading files and environment, checking it, and keeping secrets out of sight."""

from burler.config.load import environment_prefix, load_config
from burler.config.secrets import looks_secret, mask, scrub, secret_values
from burler.config.spec import check_config, known_keys

__all__ = [
    "check_config",
    "environment_prefix",
    "known_keys",
    "load_config",
    "looks_secret",
    "mask",
    "scrub",
    "secret_values",
]
