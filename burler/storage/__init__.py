"""Where bytes lie: one interface (``base``) for a folder (``local``), this process (``memory``), and objects
(``objects``) in a ``bucket`` of ``s3``, ``gcs``, ``azure`` or ``fsspec_store``. URLs: ``location``; errors of stores:
``faults``.
"""
