"""The engine: one run of a tap, from the streams that are wanted to the last STATE.

What to open for what:

    family     a stream, and all streams whose rows come in its run
    state/     what a state says of a family: where a run begins, what it has reached
"""
