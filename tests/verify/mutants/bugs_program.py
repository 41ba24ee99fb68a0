"""Bugs of the catalog and of the program: flags, selection, output, exit codes."""

from __future__ import annotations

from bugs import Bug

_ABOUT = '        about = {"inclusion": inclusion, "selected-by-default": True}\n'
_READER_GONE = """\
    except OSError as error:  # of stdout: all others are told as a TapError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at the end
        LOG.critical("cannot write to stdout: %s", error.strerror)
        return 4
"""
_MISSING = """\
    missing = [key for key in REQUIRED if not config.get(key)]
    if missing:
        raise TapError(f"config {path}: {', '.join(missing)} must be given")
"""

PROGRAM_BUGS = (
    Bug(
        "print_on_stdout",
        "progress is printed among the messages",
        (
            (
                '            yield answer["items"]\n',
                '            print(f"page {page} of {path}")\n            yield answer["items"]\n',
            ),
        ),
    ),
    Bug(
        "token_in_log",
        "the config is logged as it is",
        (('"***" if key in SECRETS else value for key', "value for key"),),
        subtle=True,
    ),
    Bug(
        "streams_not_selected_too",
        "every stream is read, selected or not",
        (('        if not is_chosen(about.get((), {}), stream.get("selected"), False):\n            continue\n', ""),),
        subtle=True,
    ),
    Bug(
        "fields_not_selected_too",
        "every field goes out, selected or not",
        (('            if is_chosen(about.get(("properties", field), {}), of_field.get("selected"), True)\n', ""),),
        subtle=True,
    ),
    Bug(
        "catalog_and_properties_fail",
        "--catalog and --properties together are an error",
        (
            (
                "    given = flags.catalog or flags.properties\n",
                "    if flags.catalog and flags.properties:\n"
                '        raise TapError("give --catalog or --properties, not both")\n'
                "    given = flags.catalog or flags.properties\n",
            ),
        ),
        subtle=True,
    ),
    Bug(
        "zero_after_an_error",
        "the exit code is 0 though the run has failed",
        (
            (
                '        LOG.critical("%s", error)\n        return 1\n',
                '        LOG.critical("%s", error)\n        return 0\n',
            ),
        ),
        subtle=True,
    ),
    Bug(
        "traceback_without_config",
        "a config that lacks something, or is not given, is a traceback",
        ((_MISSING, ""), ('"-c", required=True, help', '"-c", help')),
        subtle=True,
    ),
    Bug(
        "reader_gone_traceback",
        "a target that ends early makes a traceback",
        ((_READER_GONE, ""),),
        subtle=True,
    ),
    Bug(
        "inclusion_missing",
        "the metadata of fields have no inclusion",
        (
            (
                _ABOUT,
                '        about = {"selected-by-default": True, "selected": True if fixed else None}\n'
                "        about = {key: value for key, value in about.items() if value is not None}\n",
            ),
        ),
    ),
    Bug(
        "replication_key_can_be_left_out",
        "the replication key is not automatic",
        (
            (
                '        fixed = field in stream["keys"] or field == replication_key\n',
                '        fixed = field in stream["keys"]\n',
            ),
        ),
    ),
    Bug(
        "replication_key_not_in_schema",
        "the replication key is a field that does not exist",
        (('"replication_key": "updated_at",', '"replication_key": "modified_at",'),),
    ),
    Bug(
        "stream_twice",
        "a stream is in the catalog twice",
        (("[entry(name) for name in STREAMS]}", '[entry(name) for name in (*STREAMS, "orders")]}'),),
    ),
    Bug(
        "unresolved_ref",
        "a schema refers to a definition that is nowhere",
        (
            (
                '            address=record_of("null", street=TEXT, city=TEXT, zip=TEXT),\n',
                '            address={"$ref": "#/definitions/address"},\n',
            ),
        ),
    ),
)
