"""Programs that others wrote, in an environment of their own (.venv-peers), and a real PostgreSQL server."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "batch"))

from s3_server import s3_process_server, s3_server  # noqa: F401


@pytest.fixture(scope="session")
def peers():
    """The bin folder of a virtual environment that holds the peers; made once, then kept."""
    import peers_environment

    try:
        return peers_environment.make()
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the peers can't be installed: {error}")


@pytest.fixture(scope="session")
def old_peers():
    """The bin folder of a virtual environment with a target that knows RECORDs alone."""
    import peers_environment

    try:
        return peers_environment.make_old()
    except peers_environment.NotInstalled as error:
        pytest.skip(f"the old peers can't be installed: {error}")


def _server_programs():
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this test run; gives how to connect. PostgreSQL refuses to run as root."""
    programs = _server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed. On Debian: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="burler-postgres-"))  # short, and nobody else's to clean up
    as_user = {}
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user 'postgres' to run the server as")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": "postgres", "group": user.pw_gid, "extra_groups": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def call(*command):
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)

    call(programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8")
    options = f"-p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1"
    call(programs / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    yield {"host": "127.0.0.1", "port": port, "user": "postgres", "database": "postgres", "psql": programs / "psql"}
    call(programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder, ignore_errors=True)
