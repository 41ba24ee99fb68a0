"""What a state says of a family of streams: where its run begins, and what it has reached. The document is changed in
place: no threads, no user code.

What to open for what:

    ledger      the state of a run: where families begin, what is put into it, when a STATE comes
    coverage    where a parent begins, so that no substream misses anything
    ordered     partitions that rise, and collapse into the stream's bookmark
"""
