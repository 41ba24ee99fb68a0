"""An old tap on singer-python that uses two packages of burler: see ``tap.py``. Run it: ``python -m plain_singer``."""
