"""A real FTP server in this process; everybody may write."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers import collect_sockets


@contextmanager
def ftp_server(folder: Path, *, says_times: bool = True) -> Iterator[tuple[str, Path]]:
    """The URL of a server, and the folder it serves.

    Args:
        says_times: whether it knows MLSD; else its lists are for people to read, as those of old servers.
    """
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import ThreadedFTPServer

    authorizer = DummyAuthorizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        authorizer.add_anonymous(str(folder), perm="elradfmwMT")
    known = {name: one for name, one in FTPHandler.proto_cmds.items() if says_times or name not in ("MLSD", "MLST")}
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer, "proto_cmds": known})
    own = type("Server", (ThreadedFTPServer,), {"_exit": threading.Event()})  # else all servers end with the first
    ftp = own(("127.0.0.1", 0), handler, ioloop=IOLoop())
    thread = threading.Thread(target=ftp.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ftp://127.0.0.1:{ftp.address[1]}", folder
    finally:
        ftp.close_all()
        thread.join(5)
        collect_sockets()
