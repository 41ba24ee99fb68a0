"""What every program that takes Singer messages needs, whatever it makes of them (``lake``, ``batch``).

In: ``intake`` (blocks from a pipe), ``lines`` and ``page`` and ``reader`` (messages of any tap, record bytes
untouched), ``timestamps``. Out: ``held`` (STATEs that wait
for their data), ``roll`` (when a file ends), ``open_files``.
"""
