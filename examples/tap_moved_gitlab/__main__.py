"""``python -m tap_moved_gitlab``, with Singer's flags."""

from . import tap

tap.cli()
