"""A tap as text that fits an option of Spark's, which are all text: its name where it has one, else its code."""

from __future__ import annotations

import base64
import binascii
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.appref import AppRef
from burler.declare.app import App
from burler.declare.tap import Tap
from burler.errors import AppError, UsageError
from burler.singer.messages import encode
from burler.spark.launch import make_sources_known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SENT = "burler-app:"
_OF_MAIN = ("__main__:", "__mp_main__:")


def reference(app: str | Path | Tap) -> str:
    """What the option ``app`` takes for a tap.

    A tap in a module goes by its name, together with the folders that modules are found in here: a module beside the
    script is found then, where those folders are. A tap of a script or a notebook goes by value, with its functions;
    its client does not, and is made where it is needed.

    Raises:
        UsageError: a tap that can't be sent; the error says why. AppError: APP names no tap.
    """
    return _SENT + base64.b64encode(pickle.dumps(AppRef.of(app))).decode()


def from_text(text: str) -> AppRef:
    """What an option ``app`` refers to.

    Raises:
        UsageError: it names no tap that can be found from here.
    """
    if text.startswith(_SENT):
        try:
            made = pickle.loads(base64.b64decode(text[len(_SENT) :], validate=True))
        except (binascii.Error, pickle.UnpicklingError, EOFError) as error:
            raise UsageError(f"format 'burler': option 'app' was cut: {error}. Make it with reference(tap).") from None
        assert isinstance(made, AppRef)
        return made
    if text.startswith(_OF_MAIN):
        raise UsageError(
            f"format 'burler': option 'app': '{text}' names the script or notebook itself, which no other process can "
            "import. Give the tap: burler.spark.read(spark, tap, stream=...)."
        )
    _see_archives()
    try:
        return AppRef.of(text)
    except AppError as error:
        raise AppError(
            f"{error} Is it beside your script? Spark's own processes do not look there: "
            "burler.spark.read(spark, app, stream=...) takes its folder along, spark.addArtifacts(path, pyfile=True) "
            "sends a module."
        ) from None


def load(ref: AppRef) -> App:
    """The tap of a reference, in this process.

    Raises:
        UsageError: it is not here, or fails to import.
    """
    _see_archives()
    return ref.load()


def _see_archives() -> None:
    """Put archives that were sent to this process on the path of its imports.

    Spark does so itself for those that were sent before it first heard of the format, and not for later ones.
    """
    files = sys.modules.get("pyspark.core.files")
    root = getattr(getattr(files, "SparkFiles", None), "_root_directory", None)
    if root is None:
        return
    for path in sorted(Path(root).glob("*")):
        if path.suffix in (".zip", ".egg") and str(path) not in sys.path:
            sys.path.append(str(path))


def read(spark: SparkSession, app: str | Path | Tap, *, stream: str = "", **options: Any) -> DataFrame:
    """A stream of a burler app as a DataFrame: ``spark.read.format("burler")`` with the options filled in.

    Each action on the DataFrame extracts again; to keep what was extracted, land it (``burler.spark.land``).

    Args:
        app: the tap itself, also one of a script or notebook, or what names it.
        stream: which one; may be left out where the tap has one stream.
        options: as documented for the format; ``config``, ``state`` and ``catalog`` may be dicts, ``fields`` a list.

    Raises:
        UsageError: the tap can't be sent. What is wrong with options shows when Spark plans.
    """
    make_sources_known(spark)
    reader = spark.read.format("burler").option("app", reference(app))
    given = {"stream": stream or None, **options}
    for name, value in given.items():
        if value is not None:
            reader = reader.option(name, _text(value))
    return reader.load()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return encode(value).decode()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
