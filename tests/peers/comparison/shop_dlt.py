import dlt
from dlt.sources.rest_api import rest_api_source

source = rest_api_source(
    {
        "client": {"base_url": dlt.config["url"]},
        "resources": [
            {
                "name": "orders",
                "primary_key": "id",
                "write_disposition": "merge",
                "endpoint": {
                    "path": "orders",
                    "data_selector": "data",
                    "params": {"since": "{incremental.start_value}"},
                    "incremental": {"cursor_path": "updated_at", "initial_value": "2000-01-01T00:00:00Z"},
                    "paginator": {"type": "cursor", "cursor_path": "next_page", "cursor_param": "page"},
                },
            }
        ],
    },
    name="shop",
)

if __name__ == "__main__":
    dlt.pipeline("shop", destination="duckdb", dataset_name="raw").run(source)
