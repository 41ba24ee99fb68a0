"""A depot with a SOAP service, made with spyne: ``python -m examples.tap_depot.server``.

Any Python may start it: it makes the environment that spyne needs (see ``environment``) and goes on there. Its rows
come from a seed. POST /changes?count=3 brings three orders on to their next status, and three new ones in.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def serve(options: argparse.Namespace) -> None:
    """Serve until the process is ended; the first line of stdout is the address."""
    from data import Depot
    from service import application

    depot = Depot(options.orders, options.seed)
    soap = application(depot, stock_fails=options.stock_fails)

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/changes":
            return soap(environ, start_response)
        depot.change(int(parse_qs(environ["QUERY_STRING"])["count"][0]))
        start_response("204 No Content", [])
        return []

    with make_server("127.0.0.1", options.port, answer, handler_class=_Quiet) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


def begin_in_spynes_python() -> None:
    """Start this file anew in the environment that has spyne."""
    from .environment import NotInstalled, python

    try:
        found = python()
    except NotInstalled as error:
        raise SystemExit(f"server: {error}") from None
    os.execv(found, [str(found), str(Path(__file__).resolve()), *sys.argv[1:]])


def main() -> None:
    """Read the options, and serve."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--port", type=int, default=8767, help="0: any that is free")
    parser.add_argument("--orders", type=int, default=230)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stock-fails", action="store_true", help="ListStock answers its second page with a fault")
    options = parser.parse_args()
    if __package__:  # with -m, in burler's Python
        begin_in_spynes_python()
    serve(options)


if __name__ == "__main__":
    main()
