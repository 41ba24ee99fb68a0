"""``python -m tap_ledger``, with Singer's flags."""

from . import tap

tap.cli()
