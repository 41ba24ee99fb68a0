"""Which streams there are, and which of them a run reads.

What to open for what:

    discovery, metadata    the streams that there are, and the catalog as the tap says it
    plan                   which of them a run reads, in which order; what a catalog or a state says and can't be meant
    user_catalog           what a user's catalog changes
"""
