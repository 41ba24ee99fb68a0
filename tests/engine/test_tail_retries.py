"""How long a stream of a tail waits after failures, and which errors are lost connections: those after which the client
is made anew."""

from __future__ import annotations

import errno
import http.client
import importlib
import itertools

import pytest

import burler
from burler.errors import NoAnswerError, NotFoundError
from burler.testing import FakeClock, run_tap

TAIL = {"tail": True, "new_record_polling_interval_ms": 60_000, "tail_max_retries": None}


def failing(errors, **config):
    """A tail whose rounds fail with these errors, one each (None: a good round). Gives when each was read,
    by the clock, and how many clients had been made by then."""
    tap, clock, seen, made = burler.tap("tap-t"), FakeClock(), [], []

    @tap.client
    def client():
        made.append(1)
        return len(made)

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema={"properties": {"id": {}}})
    def rows(client):
        error = errors[len(seen)] if len(seen) < len(errors) else None
        seen.append((clock.monotonic(), len(made)))
        if error is not None:
            raise error
        return [{"id": len(seen)}]

    run_tap(tap, {**TAIL, "tail_max_rounds": len(errors) + 1, **config}, clock=clock)
    return seen


def waits(count, **config):
    times = [at for at, _made in failing([OSError() for _ in range(count)], **config)]
    return [after - before for before, after in itertools.pairwise(times)]


def test_waits_double_up_to_5_minutes(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    assert waits(60) == [1, 2, 4, 8, 16, 32, 64, 128, 256, *[300] * 51]


def test_each_wait_is_a_random_part_of_that(monkeypatch):
    parts = [0.0, 0.25, 0.5, 0.999]
    left = iter(parts)
    monkeypatch.setattr("random.random", lambda: next(left))
    assert waits(4) == pytest.approx([part * 2**n for n, part in enumerate(parts)])


def test_a_good_round_sets_it_back(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    assert waits_of([OSError(), OSError(), OSError(), None, OSError(), OSError()]) == [1, 2, 4, 60, 1, 2]


def waits_of(errors):
    times = [at for at, _made in failing(errors)]
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.mark.parametrize(
    ("config", "reads"), [({"tail_max_retries": 0}, 1), ({"tail_retry": False}, 1), ({"tail_max_retries": 10}, 11)]
)
def test_how_often_it_is_tried_again(config, reads):
    assert len(failing([OSError() for _ in range(20)], **config)) == reads


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


def named(names):
    return [type(name, (Exception,), {})() for name in names]


def raised_from(error, cause):
    error.__cause__ = cause
    return error


def raised_behind(error, context):
    error.__context__ = context
    return error


def circle():
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    return first


def of_client(module, *names):
    """Errors of a client, made without what they want to be told."""
    kinds = [getattr(importlib.import_module(module), name) for name in names]
    return [kind.__new__(kind) for kind in kinds]


def test_after_a_lost_connection_the_client_is_made_anew_and_after_another_error_it_is_kept():
    shutdown = type("AdminShutdown", (type("OperationalError", (Exception,), {}),), {})
    lost = [
        *named(LOST),
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError(),
        EOFError(),
        http.client.RemoteDisconnected(),
        http.client.IncompleteRead(b""),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        OSError(errno.ENOTCONN, "not connected"),
        shutdown(),
        raised_from(RuntimeError("can't read"), shutdown()),
        raised_behind(ValueError("no rows"), ConnectionResetError()),
        NoAnswerError("no reply"),
        *of_client("requests.exceptions", "ConnectionError", "SSLError", "ReadTimeout", "ConnectTimeout"),
        *of_client("requests.exceptions", "ChunkedEncodingError"),
        *of_client("redis.exceptions", "ConnectionError", "BusyLoadingError", "TimeoutError"),
        *of_client("psycopg.errors", "AdminShutdown", "CrashShutdown", "ConnectionFailure", "CannotConnectNow"),
    ]
    others = [
        *named(NONE),
        OSError(errno.ENOSPC, "no space"),
        FileNotFoundError(),
        PermissionError(),
        KeyError("connection"),
        RuntimeError("connection closed"),
        circle(),
        NotFoundError("no such page"),
        *of_client("requests.exceptions", "HTTPError", "InvalidURL", "TooManyRedirects", "StreamConsumedError"),
        *of_client("redis.exceptions", "ResponseError", "DataError", "WatchError", "NoScriptError"),
        *of_client("psycopg.errors", "UndefinedTable", "UniqueViolation", "SyntaxError", "InsufficientPrivilege"),
    ]
    for errors, expected in ((lost, True), (others, False)):
        made = [made for _at, made in failing(errors)]
        renewed = [after > before for before, after in itertools.pairwise(made)]
        assert len(renewed) == len(errors)
        assert [error for error, found in zip(errors, renewed, strict=True) if found is not expected] == []
