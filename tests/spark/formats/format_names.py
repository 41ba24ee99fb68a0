"""The formats that tests run for."""

ALL = ("delta", "parquet", "orc", "json", "iceberg", "rest", "postgres")
WITH_ARROW = ("delta", "parquet", "iceberg", "rest", "postgres")
"""Those that take Arrow rows, so that nothing here needs a session."""
LOCAL = ("delta", "parquet", "iceberg", "postgres")
"""Those of them that another program reads here (``format_readers``)."""
FILES = ("delta", "parquet", "iceberg")
"""Those of them that keep data folders on the file system, in a place that is known without asking."""
PARTITIONED = ("delta", "parquet", "iceberg")
