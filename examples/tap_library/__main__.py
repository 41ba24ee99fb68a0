"""``python -m tap_library``, with Singer's flags."""

from . import tap

tap.cli()
