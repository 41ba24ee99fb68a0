"""Commits and lines per author and month, from the tables that the demo made. Usage: demo_query.py TABLES"""

import sys

from burler import spark

QUERY = """
SELECT date_format(c.committed_at, 'yyyy-MM') AS month, c.author_name AS author, count(*) AS commits,
       coalesce(sum(f.files), 0) AS files, coalesce(sum(f.added), 0) AS lines_added,
       coalesce(sum(f.removed), 0) AS lines_removed
FROM commits c
LEFT JOIN (SELECT sha, count(*) AS files, sum(lines_added) AS added, sum(lines_removed) AS removed
           FROM file_changes GROUP BY sha) f ON f.sha = c.sha
GROUP BY 1, 2
ORDER BY month DESC, commits DESC, author
"""


def main() -> None:
    """Run the query and show its first rows."""
    sys.stdout.write("starting Spark ...\n")
    sys.stdout.flush()
    session = spark.session(app_name="burler-demo")
    try:
        for name in ("commits", "file_changes"):
            spark.table(session, f"{sys.argv[1]}/tap-git/{name}").createOrReplaceTempView(name)
        sys.stdout.write(QUERY)
        sys.stdout.flush()
        session.sql(QUERY).show(15, truncate=40)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
