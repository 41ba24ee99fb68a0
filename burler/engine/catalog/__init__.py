"""Which streams there are, and which of them a run reads.

What to open for what:

    discovery, metadata, schema_check  the catalog, as the tap says it
    overrides, plan              what a user's catalog changes; which streams, in which order
    key_checks, unseen, batch_settings  what options ask of keys; a parent that nobody selected; BATCH of a stream
"""
