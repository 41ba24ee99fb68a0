"""``python -m tap_depot``, with Singer's flags."""

from . import tap

tap.cli()
