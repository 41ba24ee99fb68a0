"""What the tests follow the ledger with: its database, the tap as a process, and a reader of its messages."""

import contextlib
import datetime as dt
import json
import subprocess
import sys
import threading
from pathlib import Path

import psycopg

import tap_ledger
from burler.testing import run_tap
from support.clocks import until
from tap_ledger import ledger

FOLDER = Path(tap_ledger.__file__).parent
LIMIT_SECONDS = 30


class Books:
    """The ledger, made anew, with a slot of its own. A database for each would be 7 MB for each."""

    def __init__(self, server, number, *, entries, tap_password):
        self.url, self.slot = server.url("books"), f"slot_{number}"
        self._asking = None  # tests wait by asking: a connection for each question costs more than all else
        self.config = {"database_url": server.url("books", user="tap", password=tap_password), "slot": self.slot}
        self.do(
            "drop publication if exists burler_ledger",
            "drop schema public cascade",
            "create schema public",
            "grant usage on schema public to public",
        )
        ledger.fill(self.url, entries=entries)

    def do(self, *statements):
        """Run statements, each for itself, as the superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def ask(self, statement):
        """The rows of a statement."""
        if self._asking is None:
            self._asking = psycopg.connect(self.url, autocommit=True)
        try:
            return self._asking.execute(statement).fetchall()
        except psycopg.OperationalError:  # the server was restarted
            self._hang_up()
            with psycopg.connect(self.url, autocommit=True) as connection:
                return connection.execute(statement).fetchall()

    def _hang_up(self):
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def run(self, state=None, *, slot=None, **more):
        """A plain run of entries in this process; with more of a config."""
        config = {**self.config, "slot": slot or self.slot, **more}
        return run_tap(tap_ledger.tap, config, state=state, select="entries")

    def confirmed(self):
        """The place before which the slot keeps nothing; None without a slot."""
        said = f"select (confirmed_flush_lsn - '0/0')::int8 from pg_replication_slots where slot_name = '{self.slot}'"
        found = self.ask(said)
        return found[0][0] if found else None

    def entries(self):
        """The table, by its key."""
        columns = "id, account_id, amount::float8, booked_at, memo, tags, details"
        with psycopg.connect(self.url, row_factory=psycopg.rows.dict_row) as connection:
            return {row["id"]: row for row in connection.execute(f"select {columns} from entries").fetchall()}

    def book(self, memo):
        """One more entry, in a transaction of its own."""
        self.do(f"insert into entries (account_id, amount, memo) values (1, 1, '{memo}')")

    def drop(self):
        """Make room: servers have so many slots; and nobody may hold a lock on what is made anew."""
        self._hang_up()
        with psycopg.connect(self.url, autocommit=True) as connection:

            def dropped():
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )
                with contextlib.suppress(psycopg.errors.ObjectInUse):
                    connection.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
                    return True

            until(dropped, "the slots are dropped")


class Copy:
    """A table as a target has it that knows keys, versions and ``_sdc_deleted_at``."""

    def __init__(self, stream="entries"):
        self.stream, self.rows, self.versions = stream, {}, {}

    def take(self, messages):
        """Apply messages in their order."""
        for message in messages:
            if message.get("stream") != self.stream:
                continue
            if message["type"] == "ACTIVATE_VERSION":
                left = [key for key, version in self.versions.items() if version == message["version"]]
                self.rows = {key: self.rows[key] for key in left}
                self.versions = {key: self.versions[key] for key in left}
            elif message["type"] == "RECORD":
                row = message["record"]
                if row.get("_sdc_deleted_at"):
                    self.rows.pop(row["id"], None)
                    self.versions.pop(row["id"], None)
                else:
                    self.rows[row["id"]] = {**self.rows.get(row["id"], {}), **row}
                    self.versions[row["id"]] = message.get("version")
        return self

    def entries(self):
        """The rows, as ``Books.entries`` has them."""
        return {
            key: {
                **{name: value for name, value in row.items() if not name.startswith("_sdc_")},
                "booked_at": dt.datetime.fromisoformat(row["booked_at"]),
            }
            for key, row in self.rows.items()
        }


class Tap:
    """The tap as a process, in tail mode. Its messages go to a file: what it has written can be looked at at once."""

    def __init__(self, folder, config, *flags, state=None):
        self.folder = folder
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        command = [
            sys.executable,
            "-m",
            "burler",
            "run",
            str(FOLDER),
            "--tail",
            "--config",
            str(folder / "config.json"),
        ]
        if state is not None:
            (folder / "before.json").write_text(json.dumps(state))
            command += ["--state", str(folder / "before.json")]
        with open(folder / "out.jsonl", "wb") as out, open(folder / "said.txt", "wb") as said:
            self.process = subprocess.Popen([*command, *flags], stdout=out, stderr=said, stdin=subprocess.DEVNULL)
        self._messages, self._read = [], 0

    @property
    def messages(self):
        """Those whose lines are whole, so far."""
        with open(self.folder / "out.jsonl", "rb") as out:
            out.seek(self._read)
            new = out.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self._messages += [json.loads(line) for line in whole.splitlines()]
        return self._messages

    @property
    def said(self):
        """Its log."""
        return (self.folder / "said.txt").read_text(errors="replace")

    def rows(self, stream="entries"):
        """The records that came."""
        return [m["record"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]

    @property
    def states(self):
        """The STATEs that came."""
        return [m["value"] for m in self.messages if m["type"] == "STATE"]

    @property
    def places(self):
        """Where in the log the STATEs stand, those that say it."""
        return [place for state in self.states if (place := place_of(state)) is not None]

    def until(self, condition, what):
        """Wait; the process must not end meanwhile."""

        def holds():
            ended = self.process.poll() is not None
            found = condition()
            assert found or not ended, f"the tap ended with {self.process.returncode}\n{self.said}"
            return found

        return until(holds, what, lambda: self.said)

    def until_memo(self, memo):
        """Wait for a row."""
        return self.until(lambda: [row for row in self.rows() if row.get("memo") == memo], f"{memo} has come")

    def end(self, number):
        """Send a signal, and wait: the exit code."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_SECONDS)


def place_of(state):
    """The place in the log that a STATE covers; None if it says none."""
    return state.get("bookmarks", {}).get("entries", {}).get("stream_state", {}).get("lsn")


def no_row_behind_the_state_that_covers_it(messages):
    """A STATE's place lies behind all rows before it, or between two transactions: what comes after it is newer."""
    place = 0
    for message in messages:
        if message["type"] == "STATE":
            place = place_of(message["value"]) or place
        elif message["type"] == "RECORD" and message["stream"] == "entries":
            assert message["record"]["_sdc_lsn"] >= place


def error_of(out):
    """What the stream's error says, in one line."""
    return " ".join(str(out.result.errors["entries"]).split())


class Writers:
    """Some threads that write until the block ends; their transactions overlap."""

    def __init__(self, books, count=3):
        self._books, self._over = books, threading.Event()
        self.errors = []
        self._threads = [threading.Thread(target=self._write, args=(seed,)) for seed in range(count)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc):
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors

    def _write(self, seed):
        while not self._over.wait(0.02):
            seed += 100
            try:
                ledger.work(self._books.url, count=5, seed=seed)
            except psycopg.errors.DeadlockDetected:
                continue  # two of them wanted the same rows
            except Exception as error:
                self.errors.append(error)
                return
