"""Messages into files, and files into manifests: ``writer`` (one process), ``parallel`` and ``parts`` (several),
``ingest`` (the lines of any tap), ``state`` (where the next run of a tap begins). Beneath them ``files`` and
``openfile`` (open data files), ``claims`` (locks and claims), ``notes`` (catalog and status).
"""
