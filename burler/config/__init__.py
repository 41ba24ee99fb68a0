"""Config of a tap: reading files and environment, checking it, writing it back, keeping secrets out of sight.

What to open for what:

    forms, authors           every kind of config_spec behind one face; functions, validators and classes of authors
    schemas, fill            a config's JSON Schema: telling it from an example, references, types; defaults filled in
    validate, sentences      checking with jsonschema, whatever its version; what it found, in words
    problems                 all that is wrong, gathered into one error
    spec                     a config_spec of any kind becomes its form; plain functions for those without a tap
    loading, environment     files and variables into one config; names and types of variables
    secrets                  which keys hold one, and what is shown in their place
    writeback, edit          what the tap changes goes back into its file: when; single keys in the text
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.config.environment import environment_prefix, variable_of
    from burler.config.forms import ConfigForm, ConfigSpec
    from burler.config.loading import Loaded, load
    from burler.config.secrets import looks_secret, mask, scrub, secret_values
    from burler.config.spec import check_config, known_keys, load_config, parse_spec
    from burler.config.writeback import ConfigFiles
    from burler.localfile import replace_file

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

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
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
            "load_config": "spec",
            "looks_secret": "secrets",
            "mask": "secrets",
            "parse_spec": "spec",
            "replace_file": "writeback",
            "scrub": "secrets",
            "secret_values": "secrets",
            "variable_of": "environment",
        },
    )
