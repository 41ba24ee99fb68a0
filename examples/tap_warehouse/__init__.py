"""tap-warehouse: daily CSV files, a folder of JSON lines, and an export that has to be asked for."""

from typing import Any

import burler
import burler.files
import burler.http

tap = burler.tap(
    "tap-warehouse",
    config_spec={
        "type": "object",
        "required": ["folder", "base_url", "access_token"],
        "properties": {
            "folder": {"type": "string", "description": "Where the files are: a folder, or a URL such as s3://in."},
            "base_url": {"type": "string", "description": "Of the server that makes exports."},
            "access_token": {"type": "string", "description": "For that server."},
            "poll_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "At first."},
            "export_limit_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 600, "description": "In all."},
        },
    },
    version="1.0.0",
    description="Sales, events and stock of a warehouse that sends files.",
)

# How the warehouse writes its CSV files: its own time, semicolons.
SALES: dict[str, Any] = {"csv": burler.files.Csv(delimiter=";", zone="Europe/Berlin"), "add": ("_file", "_modified")}


def sales_files(config):
    """Where the sales are: one file a day."""
    return f"{config['folder']}/sales-*.csv.gz"


@tap.client
def client(config):
    return burler.http.Client(config["base_url"], token=config["access_token"])


# Rows of files have no time of change of their own: the file's stands for it. A file that is sent again, corrected,
# brings all of its rows once more, and their keys make targets replace them.
@tap.sync("sales", key_properties="sale_id", replication_key="_modified")
def sales(config, stream):
    return burler.files.read(sales_files(config), stream=stream, **SALES)


tap.schema("sales", method=burler.files.schema(sales_files, **SALES))


@tap.sync("events", key_properties=["device", "at"], replication_key="_modified")
def events(config, stream):
    # Devices write all the time: files that changed in the last two seconds are left for the next run.
    return burler.files.read(
        f"{config['folder']}/events/**/*.jsonl", stream=stream, add="_modified", settle_seconds=2, on_bad_file="skip"
    )


tap.schema("events", method=burler.json_file("schemas/events.json"))


@tap.sync("stock", key_properties="article")
def stock(client, config, stream):
    """All of the stock, as a Parquet file that the server makes when it is asked to."""

    def ready(job):
        found = client.json(f"/exports/{job}")
        if found["state"] == "failed":
            raise RuntimeError(f"the export failed: {found['error']}")
        return [burler.files.Part(**part) for part in found["parts"]] if found["state"] == "done" else None

    return burler.files.export(
        stream=stream,
        what="the stock",
        request=lambda: client.json("/exports", method="POST", json={"table": "stock"})["id"],
        ready=ready,
        cancel=lambda job: client.delete(f"/exports/{job}"),
        download=client,
        poll_seconds=config["poll_seconds"],
        limit_seconds=config["export_limit_seconds"],
        keep_job=True,
    )


tap.schema("stock", method=burler.json_file("schemas/stock.json"))
