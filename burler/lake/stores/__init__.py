"""Where a lake can lie: ``urls`` finds the store of a URL; ``local`` (with ``local_*``), ``memory``, and ``objects``
(with ``object_*``) on top of one of the buckets ``s3``, ``gcs``, ``azure``, ``other``. What a store promises:
``burler.lake.store``.
"""
