"""What to do about each class of error, and where each part of burler is explained. Tests ask for an entry for each."""

from __future__ import annotations

AREAS = {
    "batch": ("BATCH files", "batch.md"),
    "batch_config": ("The config of batches", "batch.md"),
    "cli": ("The command line", "running.md"),
    "columns": ("Columns of tables and batch files", "table-types.md"),
    "config": ("The config", "config.md"),
    "context": ("Inside of a sync function", "taps.md"),
    "declare": ("The declarations of a tap", "mistakes.md"),
    "errors": ("All errors", "running.md"),
    "extras": ("Optional packages", "running.md"),
    "files": ("Files of a source", "files.md"),
    "graphql": ("GraphQL", "graphql.md"),
    "http": ("HTTP", "http.md"),
    "installing": ("Optional packages", "installing.md"),
    "lake": ("The lake", "lake.md"),
    "patterns": ("Patterns", "patterns.md"),
    "pipeline": ("Rows on their way", "values.md"),
    "pytest_plugin": ("The plugin of pytest", "verify.md"),
    "regex": ("Regular expressions of schemas", "values.md"),
    "runtime": ("A run", "running.md"),
    "scaffold": ("`burler new`", "new.md"),
    "schema": ("Schemas", "schemas.md"),
    "settings": ("Settings", "running.md"),
    "singer": ("Catalog, selection and state", "selecting.md"),
    "sinks": ("Where messages go", "running.md"),
    "soap": ("SOAP", "soap.md"),
    "source_state": ("What a source said of itself", "source-state.md"),
    "spark": ("Spark and tables", "spark.md"),
    "spec": ("The rules of Singer", "verify.md"),
    "sql": ("Databases", "sql.md"),
    "tally": ("Counts", "reports.md"),
    "target": ("Messages of any tap", "lake.md"),
    "testing": ("Tests of a tap", "testing.md"),
    "verify": ("Verify mode", "verify.md"),
}
"""Package or module of burler -> its title, and the page that explains it."""

CURES = {
    "BurlerError": (
        "Every error that burler raises on purpose is one of its kinds, so `except BurlerError` catches all "
        "of them and nothing of yours. By itself it is said where no kind fits: the text has the cure."
    ),
    "UsageError": (
        "Nothing was run and nothing was written, so mend the command, the catalog or the state that the text "
        "names, and start again. Trying again without a change gives the same: a scheduler should not retry "
        "exit code 2."
    ),
    "AppError": (
        "`APP` is a file (`tap_crm.py`), a module (`tap_crm`), `module:attribute`, or the command of an "
        "installed tap. The text says which of these was tried, and where. An error in the tap's own module "
        "is shown with its line."
    ),
    "ConfigError": (
        "All problems of the config come at once, a line each. `burler about APP` shows every key, with the "
        "variable that sets it. Secrets are never shown, so a value that is wrong may be `***` in the text."
    ),
    "CatalogError": (
        "Make the catalog anew (`burler discover APP --config config.json > catalog.json`) and put your "
        "selection back, or choose with `--select`. A catalog of another version of the tap may name streams "
        "and fields that are gone."
    ),
    "StateError": (
        "The file given with `--state` holds a state, a STATE message, or STATE lines, the newest last. An "
        "empty file is none: leave the option out for a first run. Keep the broken file until you know why: "
        "`-o FILE` replaces it whole, so a half state was written by something else."
    ),
    "DeclarationError": (
        "Said before anything runs: the tap's own code must change. [Mistakes](../mistakes.md) has the usual "
        "ones, each with a whole example. All gaps of a tap come at once."
    ),
    "MissingExtra": (
        "Install the extra that the text names, in the environment that runs the tap. Taps need no extras to "
        "be imported, so this comes when the thing is used."
    ),
    "StreamError": (
        "One stream failed and ended; the others went on, and the last STATE holds what is out of all of "
        "them. Run again with that STATE: the stream goes on at its bookmark. The cause stands behind the "
        "colon, and the whole traceback with `BURLER_LOG_LEVEL=DEBUG`."
    ),
    "BadRecordError": (
        "A row of the source does not fit its schema: the text has the field and the value. Correct the "
        "schema, or the row where the sync function gives it (`@tap.post_transform` sees rows that fit alone); "
        "`on_bad_record` (`skip`, `null`) lets a run pass such rows, counted in its report. [Values](../values.md) "
        "says what each type takes."
    ),
    "UnsortedStreamError": (
        "The source gave rows against the order that the stream declares, so its bookmark could have passed "
        'rows that come later. Sort the request, or declare `order="none"`: then the bookmark moves at the '
        "end of the stream alone."
    ),
    "OrderingError": (
        "`@burler.verify.ensure_ordering` saw two records in the other order; the text has both. The source "
        "does not sort as the code believes: nothing after the first of them is right."
    ),
    "PartialError": (
        "Partitions, or calls for single parents, failed; what the others gave is out, and the bookmark waits "
        "for the rest. Run again with the last STATE. `max_failures` says how many may fail before the stream "
        "ends."
    ),
    "DataError": (
        "Input that burler was given is broken: a message, a file. Nothing of it was taken in behind the "
        "place that the text names."
    ),
    "MessageError": (
        "The program before the pipe printed a line that is no Singer message. Tap and log lines mixed on "
        "stdout are the usual cause: `any-tap 2>log | burler ...`. `burler verify -` says more of a tap's "
        "output."
    ),
    "BatchError": (
        "A BATCH message, or a file that it names, can't be read (or a row can't be held by the format). The "
        "file is left as it is. Is it from an older run, cut off, or already removed by its reader?"
    ),
    "LakeError": (
        "`burler lake check LAKE` looks at all of a lake and says what to do; `burler lake rebuild` makes "
        "manifests anew from the data files, which are the truth."
    ),
    "SourceError": (
        "What the source gave is no answer. Raised in a sync function it ends the stream, the partition or "
        "the call, and the next run goes on at the bookmark."
    ),
    "HttpError": (
        "The text has method, URL (secrets masked), status and the start of the reply, and how often it was "
        "asked. Rate limits, lost connections and 5xx were tried again already (`retries=`, "
        "`max_wait_seconds=`): see [the HTTP client](../http.md)."
    ),
    "NotFoundError": (
        "404 or 410. Look at `base_url` and the path; where a thing may be missing, `allow_statuses=(404,)` "
        "gives the reply instead of this error. In a substream it ends the call for that parent alone."
    ),
    "CredentialsError": (
        "401 or 403: the token is wrong, has expired, or lacks a right. Credentials that can be renewed were "
        "renewed and tried once more; a fixed token is not tried again, since that may lock an account. See "
        "[credentials](../credentials.md)."
    ),
    "NoAnswerError": (
        "No reply came, or it broke off: name, port, proxy, firewall, or a server that is down. It was asked "
        "for as often as `retries=` and `max_wait_seconds=` of the client say. The next run goes on at the "
        "bookmark."
    ),
    "NotModified": (
        "No failure: the source says that nothing has changed since the last run ([source "
        "state](../source-state.md)). Seen only in your own `except`."
    ),
    "PagingError": (
        "The server's pages lead in a circle, to another host, or nowhere. burler stops rather than read for "
        "ever or lose rows; [paging](../paging.md) has the options of each paginator."
    ),
    "GraphQLError": (
        "The reply holds `errors`; the text has the first of them, with its path. Partial data is not used "
        "unless the call says so."
    ),
    "SoapError": "A fault of the server, or a document that is no SOAP. The text has the fault's code and words.",
    "SqlError": (
        "The database refused the query or went away. The transaction was rolled back (reads alone are made); "
        "the next run goes on at the bookmark."
    ),
    "FileError": (
        "A file of the source can't be read as what it should be: cut off, another encoding, another format. "
        "Mend it, or say how it is written (`csv=`, `encoding=`). Files before it are noted and not read "
        'again; with `on_bad_file="skip"` the stream goes on past it and counts it. See '
        "[files](../files.md)."
    ),
    "StorageError": (
        "A disk or a store can't be read or written: full, no rights, no network. What was committed stands, "
        "what was half written is invisible to readers; run again once it is mended."
    ),
    "ExportError": (
        "Tables could not be made or published. The tables that were there are as they were; run the export again."
    ),
    "LockLost": (
        "Another writer took this stream of the lake over, because this one did not renew its lock in time (a "
        "machine that slept, a clock that jumped) or both were started. Nothing of the lost commit counts. "
        "See that one run at a time is scheduled, then run again with the last STATE."
    ),
    "OutputClosed": (
        "The target, or whatever reads the tap, ended before the tap did: its own error is the one to read. "
        "All that it has taken is covered by the STATEs that it printed."
    ),
}
"""Error class -> what its page says under "What to do"."""
