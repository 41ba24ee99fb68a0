"""The command line: builds objects, calls the engine, turns errors into exit codes.

What to open for what:

    main, singer_flags                ``burler``; a tap's own command
    running, reporting                ``run``, ``discover``; the end of a run: summary, report, exit code
    options, flags, options_*, sizes  options of a run; settings as options; those of batch and export; sizes
    helping, completing, completion   help, and words that are misspelt; what a shell offers; its script
    process, common                   stdout, errors and exit codes; catalogs, states, the store of a lake
    about, delivery, delivery_tail, meltano  ``--about``; what a stream promises; Meltano's definition of the tap
    live, progress                    a tail on a terminal: its table; how far long work has come
    exposing                          numbers for Prometheus
    lakes, lake_tables                ``burler lake``: ``ls``, ``check``, ``docs`` ...; their tables, sizes, ages
    lake_read, lake_write             the commands of these names
    batches, batch_clean              ``burler batch``
    exports, extracts, landing, spark_cli  ``burler export``, ``extract``, ``--sink spark:``, ``burler spark``
    infer, new, verify, verifying     the commands of these names; what ``verify`` does
"""
