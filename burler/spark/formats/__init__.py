"""Tables of every format behind one small set of methods (``base.Target``).

What to open for what:

    base, opening                  what every format promises; which one a table has, and where it lies
    merging                        which row of a key wins
    delta_table, delta_log         Delta; its versions
    iceberg_*                      Iceberg: ``iceberg_table``, its catalog, its rows
    file_tables, pointer, folders  plain files; their versions; their folders
    databases, postgres_*          URLs and names in databases; PostgreSQL: ``postgres_table``, SQL, loading, reading
    bysession, other               tables that the session's own Delta or Iceberg writes; whatever else Spark writes to
    writing, reading               rows to Parquet; tables into Spark
    checking, footers, roundtrip   columns no table can have; what files say; proof that they give back what went in
"""
