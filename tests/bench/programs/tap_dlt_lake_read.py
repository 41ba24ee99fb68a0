"""dlt's side of reading: its filesystem source and its reader of JSON lines, iterated; nothing is loaded.

Run as: tap_dlt_lake_read.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import os
import sys

import clock
import given

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

from dlt.sources.filesystem import filesystem, read_jsonl

if __name__ == "__main__":
    with clock.measured("dlt"):
        found = 0
        for message in filesystem(bucket_url=given.lake().as_uri(), file_glob="**/*.singer.gz") | read_jsonl():
            found += message["type"] == "RECORD"
        given.count(found, int(sys.argv[3]))
