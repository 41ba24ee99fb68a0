"""burler: Flask-style Singer taps, a raw lake, and Spark behind them."""

from burler.declare.spec import FULL_TABLE, INCREMENTAL, LOG_BASED
from burler.declare.tap import Tap, tap
from burler.errors import BurlerError
from burler.schema.sources import generated, json_file

__version__ = "0.1.0"

__all__ = [
    "FULL_TABLE",
    "INCREMENTAL",
    "LOG_BASED",
    "BurlerError",
    "Tap",
    "generated",
    "json_file",
    "tap",
]
