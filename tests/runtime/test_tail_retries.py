"""How long a stream of a tail waits after failures, and which errors are lost connections."""

from __future__ import annotations

import errno
import http.client

import pytest

from burler.errors import NoAnswerError, NotFoundError
from support import internals
from support.internals import tail_retries


def waits(count, spread, **settings):
    tries = tail_retries.Tries(internals.settings.Settings(tail_max_retries=None, **settings), spread=lambda: spread)
    return [tries.failed(OSError()) for _ in range(count)]


def test_waits_double_up_to_5_minutes():
    assert waits(12, 1.0) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert waits(5000, 1.0)[-1] == 300  # no overflow after a weekend


@pytest.mark.parametrize("spread", [0.0, 0.25, 0.5, 0.999])
def test_each_wait_is_a_random_part_of_that(spread):
    assert waits(11, spread) == pytest.approx([spread * one for one in waits(11, 1.0)])


def test_streams_that_fail_together_do_not_come_again_together():
    tries = [tail_retries.Tries(internals.settings.Settings()) for _ in range(20)]
    assert len({one.failed(OSError()) for one in tries}) == 20
    assert all(0 <= one.wait <= 1 for one in tries)


def test_a_good_round_sets_it_back():
    tries = tail_retries.Tries(internals.settings.Settings(tail_max_retries=3), spread=lambda: 1.0)
    assert not tries.good()
    assert [tries.failed(OSError()) for _ in range(3)] == [1, 2, 4]
    assert tries.good()
    assert (tries.failures, tries.error) == (0, None)
    assert [tries.failed(OSError()) for _ in range(4)] == [1, 2, 4, None]


@pytest.mark.parametrize(
    ("settings", "tried_again"), [({"tail_max_retries": 0}, 0), ({"tail_retry": False}, 0), ({}, 10)]
)
def test_how_often_it_is_tried_again(settings, tried_again):
    tries = tail_retries.Tries(internals.settings.Settings(**settings))
    assert [tries.failed(OSError()) is not None for _ in range(tried_again + 1)] == [True] * tried_again + [False]


def test_it_begins_anew_once_between_two_good_rounds():
    tries = tail_retries.Tries(internals.settings.Settings(tail_full_table_on_failure=True, tail_max_retries=0))
    assert tries.failed(OSError()) is None
    assert tries.begin_anew()
    assert tries.failures == 0
    assert not tries.begin_anew()
    tries.good()
    assert tries.begin_anew()
    assert not tail_retries.Tries(internals.settings.Settings()).begin_anew()


LOST = [
    *("OperationalError", "InterfaceError"),  # PEP 249: psycopg, pymysql, oracledb
    *("ConnectionDoesNotExistError", "DisconnectionError", "ConnectionFailure", "ServerSelectionTimeoutError"),
    *("ReadTimeout", "ConnectTimeout", "ChunkedEncodingError", "NewConnectionError", "ReadTimeoutError"),
    *("ServerDisconnectedError", "ConnectError", "NetworkError", "RemoteProtocolError", "PoolTimeout"),
    *("KafkaConnectionError", "NoBrokersAvailable", "AMQPConnectionError", "StreamLostError", "ChannelClosedByBroker"),
    *("ConnectionClosedOK", "WebSocketConnectionClosedException", "WebSocketTimeoutException", "StreamClosedError"),
    *("ClosedResourceError", "BrokenResourceError", "NotConnectedError", "AutoReconnectError", "RequestTimedOut"),
]
NONE = [
    *("BrokenRecordError", "ClosedPeriodError", "AccountClosedError", "PasswordResetRequired", "ResetTokenError"),
    *("ConnectorNotFound", "MissingConnectorError", "ConnectedAccountError", "DisconnectedGraphError"),
    *("InvalidConnectionString", "ConnectionSettingsError", "ConnectionConfigError"),
    *("OperationalLimitError", "UserInterfaceError", "InterfaceNotFoundError", "TimeoutSettingError"),
    *("StreamConsumedError", "StreamNotFound", "DataError", "ProgrammingError", "IntegrityError", "DecodeError"),
    *("HTTPError", "RateLimited", "Unauthorized", "ResponseError", "BrokenPromise"),
]


@pytest.mark.parametrize(("names", "lost"), [(LOST, True), (NONE, False)])
def test_names_of_errors_say_whether_a_connection_is_lost(names, lost):
    assert [name for name in names if tail_retries.is_connection(type(name, (Exception,), {})()) is not lost] == []


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionResetError(), True),
        (BrokenPipeError(), True),
        (TimeoutError(), True),
        (EOFError(), True),
        (http.client.RemoteDisconnected(), True),
        (http.client.IncompleteRead(b""), True),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), True),
        (OSError(errno.ENOTCONN, "not connected"), True),
        (OSError(errno.ENOSPC, "no space"), False),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (KeyError("connection"), False),
        (RuntimeError("connection closed"), False),
        (None, False),
    ],
)
def test_errors_of_python_itself(error, lost):
    assert tail_retries.is_connection(error) is lost


def test_what_an_error_is_and_what_it_came_from_count():
    shutdown = type("AdminShutdown", (type("OperationalError", (Exception,), {}),), {})
    assert tail_retries.is_connection(shutdown())
    own = RuntimeError("can't read")
    own.__cause__ = shutdown()
    assert tail_retries.is_connection(own)
    try:
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            raise ValueError("no rows") from None
    except ValueError as error:
        assert tail_retries.is_connection(error)


def test_no_answer_over_http_is_a_lost_connection():
    assert tail_retries.is_connection(NoAnswerError("no reply"))
    assert not tail_retries.is_connection(NotFoundError("no such page"))


@pytest.mark.parametrize(
    ("module", "lost", "kept"),
    [
        (
            "requests.exceptions",
            ["ConnectionError", "SSLError", "ReadTimeout", "ConnectTimeout", "ChunkedEncodingError"],
            ["HTTPError", "InvalidURL", "TooManyRedirects", "StreamConsumedError"],
        ),
        (
            "redis.exceptions",
            ["ConnectionError", "BusyLoadingError", "TimeoutError"],
            ["ResponseError", "DataError", "WatchError", "NoScriptError"],
        ),
        (
            "psycopg.errors",
            ["AdminShutdown", "CrashShutdown", "ConnectionFailure", "CannotConnectNow"],
            ["UndefinedTable", "UniqueViolation", "SyntaxError", "InsufficientPrivilege"],
        ),
    ],
)
def test_errors_of_clients(module, lost, kept):
    errors = pytest.importorskip(module)
    assert [name for name in lost if not tail_retries.is_connection(made(errors, name))] == []
    assert [name for name in kept if tail_retries.is_connection(made(errors, name))] == []


def made(errors, name):
    kind = getattr(errors, name)
    return kind.__new__(kind)


def test_errors_that_came_from_each_other_end_the_search():
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert not tail_retries.is_connection(first)
