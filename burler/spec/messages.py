"""The messages of a run, in the order in which they come, held against the rules of areas M, B, O and R."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from burler.config.secrets import spellings
from burler.errors import BurlerError
from burler.singer.lines import LineCut
from burler.spec.declared import Declared, declaration_of
from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.spec.lines import Line, Run, decode_block, rows_of, value_of, writable
from burler.spec.saying import say_lines
from burler.spec.schema_messages import check_schema_line
from burler.spec.secret_lines import lines_with, may_be_looked_for
from burler.spec.statelog import StateLog
from burler.spec.states import streams_of
from burler.spec.stream import StreamCheck

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class MessageCheck:
    """Takes the bytes of a tap's stdout, block by block.

    Args:
        findings: where breaches go.
        given: the state that the run was given.
        declared: what its catalog says (``burler.spec.declared``); None where there is none.
        secrets: texts that must not stand in any message.
        log_all: keep a log of all rows, for ``burler.spec.resume``.
        batch_options: for the library that reaches batch files.
        batch_allow: what manifests may name; see ``burler.batch.read``.
        guesses_given: nobody knows whether the run was given a state: one that comes before all rows is taken for it.
        now, monotonic: the clock.
    """

    most_line_bytes = 1 << 28
    """A longer line is a finding, and is not held in memory."""

    def __init__(
        self,
        findings: Findings,
        *,
        limits: Limits | None = None,
        given: Any = None,
        declared: Mapping[str, Declared] | None = None,
        secrets: Iterable[str] = (),
        log_all: bool = False,
        batch_options: Mapping[str, Any] | None = None,
        batch_allow: Allowed | Iterable[str] | None = None,
        guesses_given: bool = False,
        now: Callable[[], dt.datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.findings = findings
        self.limits = limits or Limits()
        self.streams: dict[str, StreamCheck] = {}
        given = writable(given)
        names = None if declared is None else {name for one in declared.values() for name in one.names}
        self.states = StateLog(findings, self.limits, given, names, self._goes_on)
        self.lines = 0
        self.rows = 0
        self.whole = False
        self.given, self.declared, self._log_all = given, declared, log_all
        self._batch_allow = batch_allow
        self._batch_options, self._guesses_given = batch_options, guesses_given and given is None
        self._secrets = {
            spelling.encode(errors="surrogatepass")
            for one in secrets
            if may_be_looked_for(one)
            for spelling in spellings(one)
        }
        self._now, self._monotonic = now, monotonic
        self._zero = monotonic()
        self._cut = LineCut(self.most_line_bytes)
        self._nul = False
        self.rows_since_state: dict[str, int] = {}

    def feed(self, block: bytes) -> None:
        """Look at all lines that end in this block."""
        whole = self._cut.take(block)
        self.lines += self._cut.passed
        if whole:
            self._take(whole[:-1])
        if self._cut.too_long:
            most = self.most_line_bytes >> 20
            self.say(
                "M201", f"a line does not end within {most} MiB: what stands in it was not looked at", self.lines + 1
            )

    def _take(self, whole: bytes) -> None:
        first = self.lines + 1
        self._nul = b"\\u0000" in whole
        if self._secrets:
            self._look_for_secrets(whole, first)
        for run in decode_block(whole, first, self.say):
            self._run(run)
        self.lines += whole.count(b"\n") + 1

    def _look_for_secrets(self, whole: bytes, first: int) -> None:
        lines = {line for secret in self._secrets for line in lines_with(secret, whole)}
        words = "a message holds a secret of the config (which one is not said here)"
        say_lines(self.findings, "M215", words, [first + line for line in sorted(lines)])

    def _run(self, found: Run) -> None:
        """Neighbouring messages; the rows of one stream and version among them are looked at together."""
        seconds, now = self._monotonic() - self._zero, self._now()
        number, run, raw = found
        start, count = 0, len(run)
        while start < count:
            line = run[start]
            end = start + 1
            if line.type == "RECORD":
                stream, version = line.stream, line.version
                while (
                    end < count
                    and run[end].type == "RECORD"
                    and run[end].stream == stream
                    and run[end].version == version
                ):
                    end += 1
                self._records(run[start:end], raw[start:end], number + start, seconds, now)
            else:
                self._other(line, raw[start], number + start, seconds, now)
            start = end

    def _records(
        self, lines: Sequence[Line], raw: Sequence[bytes], first: int, seconds: float, now: dt.datetime
    ) -> None:
        name = lines[0].stream
        if not name:
            for number, line in enumerate(lines, first):
                self._name(line, number)
            return
        bad = [place for place, line in enumerate(lines) if line.record is UNSET]
        if bad:
            start = 0
            for place in (*bad, len(lines)):
                if start < place:
                    self._records(lines[start:place], raw[start:place], first + start, seconds, now)
                start = place + 1
                if place < len(lines):
                    self.say("M202", "a RECORD without an object 'record'", first + place)
            return
        check = self._with_schema(name, first, "RECORD", len(lines))
        if "BATCH" in check.forms:
            words = "RECORDs and BATCHes of one stream come in one run"
            say_lines(self.findings, "M214", words, range(first, first + len(lines)), stream=name)
        check.take_records(lines, first, sum(map(len, raw)), seconds, now)
        for place in [place for place, one in enumerate(raw) if b"\\u0000" in one] if self._nul else ():
            check.take_nul(lines[place].record, first + place)
        self.rows += len(lines)
        self.rows_since_state[name] = self.rows_since_state.get(name, 0) + len(lines)

    def _name(self, line: Line, number: int) -> str | None:
        if line.stream:
            return line.stream
        self.say("M202", f"a {line.type[:40]} without 'stream'", number)
        return None

    def _stream(self, name: str) -> StreamCheck:
        check = self.streams.get(name)
        if check is None:
            declared = declaration_of(self.declared, name)
            check = self.streams[name] = StreamCheck(
                name, self.findings, self.limits, given=self.given, declared=declared, log_all=self._log_all
            )
        return check

    def _with_schema(self, name: str, number: int, kind: str, count: int = 1) -> StreamCheck:
        """The stream of a message, or of ``count`` neighbouring ones, that needs a SCHEMA before it."""
        check = self._stream(name)
        if check.schema is None:
            self.say("M204", f"a {kind} of '{name}' came before its SCHEMA: targets end there", number, name)
            check.take_schema({"schema": {}, "key_properties": list(check.keys)}, number)
        if self.declared is not None and (check.declared is None or not check.declared.selected):
            fact = "is not in the catalog" if check.declared is None else "is not selected"
            words = f"the stream '{name}' {fact}, and its {kind}s come"
            say_lines(self.findings, "M223", words, range(number, number + count), stream=name)
        return check

    def _other(self, line: Line, raw: bytes, number: int, seconds: float, now: dt.datetime) -> None:
        kind = line.type.upper()
        if kind != line.type and kind in ("SCHEMA", "STATE", "BATCH", "ACTIVATE_VERSION", "RECORD"):
            self.say("M225", f"the type is written {line.type!r}; most targets know {kind!r} alone", number)
            if kind == "RECORD":
                self._records([line], [raw], number, seconds, now)
                return
        if kind == "SCHEMA":
            self._schema(line, number)
        elif kind == "STATE":
            self._state(line, number, seconds, now)
        elif kind == "ACTIVATE_VERSION":
            name = self._name(line, number)
            if name is not None:
                self._with_schema(name, number, kind).versions.activate(line.version, number)
        elif kind == "BATCH":
            self._batch(line, raw, number, seconds)
        else:
            self.say("M203", f"messages of the type {line.type[:40]!r}, which Singer does not know", number)

    def _schema(self, line: Line, number: int) -> None:
        name = self._name(line, number)
        if name is None:
            return
        wire: dict[str, Any] = {"type": "SCHEMA", "stream": name}
        for key in ("schema", "key_properties", "bookmark_properties"):
            value = self._value(line, key, number)
            if value is not UNSET:
                wire[key] = value
        check_schema_line(wire, self.findings, number)
        self._stream(name).take_schema(wire, number)

    def _state(self, line: Line, number: int, seconds: float, now: dt.datetime) -> None:
        value = self._value(line, "value", number)
        if value is UNSET:
            if line.value is UNSET:
                self.say("M202", "a STATE without 'value'", number)
            return
        size = len(bytes(line.value)) if line.value is not UNSET else 0
        self.states.take(value, size, number, {name: check.rows for name, check in self.streams.items()})
        self.rows_since_state = {}
        if not isinstance(value, dict):
            return
        if self._guesses_given and not self.rows:
            self.given = value
            for check in self.streams.values():
                check.begin_with(value)
            return
        for check in self.streams.values():
            check.take_state(value, number, now, seconds)

    def _value(self, line: Line, key: str, number: int) -> Any:
        """A part of a message; ``UNSET`` where there is none, or none that can be read."""
        try:
            return value_of(getattr(line, key))
        except ValueError as error:
            self.say("M202", f"the {key} of a {line.type[:40]} can't be read: {error}", number, line.stream)
            return UNSET

    def _batch(self, line: Line, raw: bytes, number: int, seconds: float) -> None:
        """The files of a BATCH are read: their rows are looked at like RECORDs."""
        name = self._name(line, number)
        if name is None:
            return
        check = self._with_schema(name, number, "BATCH")
        if "RECORD" in check.forms:
            self.say("M214", "RECORDs and BATCHes of one stream come in one run", number, name)
        check.forms.add("BATCH")
        from burler.batch.readers import read

        try:
            reading = read(
                raw, check.schema, options=self._batch_options, allow=self._batch_allow, warn=lambda _text: None
            )
            for page in reading.pages():
                self._batch_rows(check, rows_of(page.lines), number, line.version, seconds)
        except BurlerError as error:
            self.say("M213", f"a BATCH can't be read: {error}", number, name)

    def _batch_rows(
        self, check: StreamCheck, rows: list[dict[str, Any]], number: int, version: int | None, seconds: float
    ) -> None:
        if not rows:
            return
        check.versions.batched = True
        check.take_rows(rows, [number] * len(rows), version, seconds)
        self.rows += len(rows)
        self.rows_since_state[check.name] = self.rows_since_state.get(check.name, 0) + len(rows)

    def close(self) -> None:
        """Give temporary files back."""
        for check in self.streams.values():
            check.log.close()

    def finish(self, *, whole: bool = True, nothing_new: bool = False, held: Collection[str] = ()) -> None:
        """The end of the messages.

        Args:
            whole: the tap came to its end; else it was stopped, and what is missing behind says nothing.
            nothing_new: the run went on from the last STATE of one just before: its bookmarks may stay.
            held: streams whose bookmark or closing version waits on purpose, since rows may be missing.
        """
        last = self._cut.rest()
        if last:
            if whole:
                self._take(last)
            else:
                self.lines += 1
        now = self._now()
        record_bytes = sum(check.bytes for check in self.streams.values())
        self.states.finish(whole=whole, rows=self.rows, record_bytes=record_bytes)
        self.whole = whole
        own_layout = self.states.has_own_layout(self._names())
        for check in self.streams.values():
            check.finish(
                whole=whole and not {check.name, check.tap_stream_id} & {*held},
                last_state=self.states.last,
                now=now,
                own_layout=own_layout,
                nothing_new=nothing_new,
            )
        if whole:
            self._without_state()
            self._without_rows()

    def _without_rows(self) -> None:
        """Streams of which nothing came, or no more than the SCHEMA, in a run that began with no state."""
        if self.given is not None or any(one.code in ("M201", "M202") for one in self.findings):
            return  # what could not be read may have been the rows
        for name, stream in self.streams.items():
            if stream.schema is not None and not stream.rows and "BATCH" not in stream.forms:
                self.say("M226", "the SCHEMA comes, and not one row", None, name)
        for one in (self.declared or {}).values():
            if one.selected and self.streams.keys().isdisjoint(one.names):
                words = "the stream is selected, and nothing of it comes, not its SCHEMA either"
                self.say("M226", words, None, one.stream)

    def _without_state(self) -> None:
        """Rows of incremental streams that no STATE covers."""
        for name, stream in self.streams.items():
            if stream.bookmarks is None or not stream.rows:
                continue
            if stream.bookmarks.covers(self.states.last if self.states.count else self.given):
                continue  # a STATE that says nothing new may be left out
            if not self.states.count:
                words = "rows of an incremental stream came, and no STATE: each run reads everything again"
                self.say("B310", words, None, name)
            elif count := self.rows_since_state.get(name):
                self.say("B318", f"{count} rows came after the last STATE: they come again with each run", None, name)

    def _names(self) -> set[str]:
        """What streams may be called in a state."""
        declared = (self.declared or {}).values()
        return {*self.streams, *streams_of(self.given), *(name for one in declared for name in one.names)}

    def _goes_on(self, name: str) -> bool | None:
        """Whether the stream that a state calls so goes on where it was; None where nobody knows."""
        for check in self.streams.values():
            if name in (check.name, check.tap_stream_id):
                return False if check.full_table else check.incremental or None
        known = (one for one in (self.declared or {}).values() if name in one.names)
        return not any(one.replication_method == "FULL_TABLE" for one in known)

    def say(self, code: str, message: str, number: int | None, stream: str | None = None) -> None:
        """Report something; ``number``: of the line."""
        self.findings.add(code, message, stream=stream, place=None if number is None else f"line {number}")
