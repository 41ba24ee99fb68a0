"""``python -m tap_helpdesk``, with Singer's flags."""

from . import tap

tap.cli()
