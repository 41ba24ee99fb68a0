"""``python -m tap_bookshop``, with Singer's flags."""

from . import tap

tap.cli()
