"""Declaring: decorators, the registry behind them, and the frozen specs they make.

What to open for what:

    tap, parts, tailing             ``Tap`` and its decorators; what they share; those of tail mode
    handle, classes                 the two other spellings
    registry, spec                  what collects all that is declared; what comes of it
    options, option_checks          the options of a stream; values of theirs that need more than a look
    checks, option_gaps, tail_gaps  what does not fit together
    strategies                      when a STATE is due
    client                          ``tap.client``
    running                         ``tap.get_bookmark()`` and the like, inside of a run
    field                           metadata of one node
    modules                         ``load_streams``
"""
