"""Any Singer tap's command: found, started with its files, read, and never left behind.

What to open for what:

    tap_command  what is run: words, environment, and what of them nobody may read
    tap_process  one run of it: its files, what it writes, how it ends; its flags and its catalog
    guard        the program between this process and the tap
    catalogs     catalogs of any tap, as they go back to it: with more or less selected
"""
