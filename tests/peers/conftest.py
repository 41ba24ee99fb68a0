"""Programs that others wrote, in an environment of their own (.venv-peers), and a real PostgreSQL server."""

import contextlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from support.objects import s3_endpoint, s3_server  # noqa: F401


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


@pytest.fixture(scope="session")
def postgres():
    """A database in the PostgreSQL server of this run of tests."""
    import postgres_server

    from support.postgres import Missing

    with contextlib.ExitStack() as stack:
        try:
            database = stack.enter_context(postgres_server.database())
        except Missing as error:
            pytest.skip(str(error))
        yield database
