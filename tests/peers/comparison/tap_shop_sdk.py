from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th


class Orders(RESTStream):
    name = "orders"
    path = "/orders"
    primary_keys = ("id",)
    replication_key = "updated_at"
    is_sorted = True
    records_jsonpath = "$.data[*]"
    next_page_token_jsonpath = "$.next_page"
    schema = th.PropertiesList(
        th.Property("id", th.IntegerType),
        th.Property("customer", th.StringType),
        th.Property("total", th.NumberType),
        th.Property("updated_at", th.DateTimeType),
    ).to_dict()

    @property
    def url_base(self):
        return self.config["url"]

    def get_url_params(self, context, next_page_token):
        return {"since": self.get_starting_replication_key_value(context), "page": next_page_token}


class TapShop(Tap):
    name = "tap-shop"
    config_jsonschema = th.PropertiesList(th.Property("url", th.StringType, required=True)).to_dict()

    def discover_streams(self):
        return [Orders(self)]


if __name__ == "__main__":
    TapShop.cli()
