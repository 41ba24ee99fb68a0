"""``python -m tap_git``, with Singer's flags."""

from . import tap

tap.cli()
