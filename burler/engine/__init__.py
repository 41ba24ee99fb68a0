"""The engine: one run of a tap, from the streams that are wanted to the last STATE.

What to open for what:

    session      one use of an app: its config, its client
    family       a stream, and all streams whose rows come in its run
    state/       what a state says of a family: where a run begins, what it has reached
    catalog/     discovery, what a user's catalog changes, the plan of a run
    writer/      one stream's way to the sink: hooks, shaping, versions, files
    run/         a run: its streams, workers and tasks, stopping
    acknowledge  telling sources what is out, or what a target's state file confirms
    tail/        rounds of a run without an end
    command/     running any tap's command
    remote       a partition that runs elsewhere
"""
