"""``python -m tap_clicks``, with Singer's flags."""

from . import tap

tap.cli()
