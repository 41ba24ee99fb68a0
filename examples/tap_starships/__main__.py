"""``python -m tap_starships``, with Singer's flags."""

from . import tap

tap.cli()
