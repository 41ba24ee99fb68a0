"""Projects of Spark's declarative pipelines for a lake: ``burler spark init-pipeline`` and what the projects import."""

from __future__ import annotations

from burler.spark.pipelines.active import Active, active_version
from burler.spark.pipelines.project import write_project

__all__ = ["Active", "active_version", "write_project"]
