"""``python -m tap_warehouse``, with Singer's flags."""

from . import tap

tap.cli()
