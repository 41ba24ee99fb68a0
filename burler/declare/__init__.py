"""Declaring: decorators, the registry behind them, and the frozen specs they make.

What to open for what:

    tap                   ``Tap``: its decorators, ``tap.client``, ``tap.get_bookmark()`` and the like
    app                   ``App``: a tap as it runs
    handle, classes       the two other spellings
    options, hooks        tables: the options of a stream; the functions that a tap is made of
    registry, spec        what collects all that is declared; what comes of it
    checks                what does not fit together
    strategies            when a STATE is due
    field                 metadata of one node
    modules               ``load_streams``
"""
