"""Who writes a schema version: ``lock`` (one lock), ``lock_file`` (what is written in it), ``locks`` (those
of one writer, with their heartbeat). Safety never rests on it: see ``burler.lake.manifests``.
"""
