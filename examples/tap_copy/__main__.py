"""``python -m tap_copy``, with Singer's flags."""

from . import tap

tap.cli()
