"""The source of the tail storm: files that grow, and a server that counts connections and says when there is more.

A stream, or a partition of one, is a *place*: a file that holds a line of ten bytes for each row. So what the source
holds is known at any time. The tap connects to the hub to say what it does (``client``, ``stuck``), or to be told that
a file has grown (``push``).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LINE_BYTES = 10


class Hub:
    """A server for all runs of a storm, on a free port of this machine, in a thread of its own."""

    def __init__(self) -> None:
        self.port = 0
        self._worlds: dict[int, World] = {}
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pushes: dict[int, set[asyncio.StreamWriter]] = {}
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="storm-hub", daemon=True)

    def __enter__(self) -> Hub:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._met, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number = -1
        try:
            words = (await reader.readline()).decode().split()
            world = self._worlds.get(int(words[0])) if len(words) == 3 else None
            if world is not None:
                number = world.number
                if words[1] == "push":
                    self._pushes.setdefault(number, set()).add(writer)
                writer.write(f"{world.came(words[1], int(words[2]))}\n".encode())
                while await reader.read(4096):
                    pass
        except (OSError, asyncio.CancelledError):
            pass  # a tap that was killed, or the end of the storm
        finally:
            self._pushes.get(number, set()).discard(writer)
            self._tasks.discard(task)
            writer.close()

    def push(self, number: int) -> None:
        """Tell all who listen to a world that there is more."""

        def tell() -> None:
            for writer in self._pushes.get(number, ()):
                writer.write(b".")

        self._loop.call_soon_threadsafe(tell)

    @contextlib.contextmanager
    def world(self, number: int, folder: Path, places: list[str]) -> Iterator[World]:
        """A source of its own, as long as this is entered."""
        world = self._worlds[number] = World(self, number, folder, places)
        try:
            yield world
        finally:
            world.stop_growing()
            del self._worlds[number]


class World:
    """The source of one run: files in a folder, and who has connected.

    Args:
        number: under which name the tap speaks of it to the hub.
        places: names of its files.
    """

    def __init__(self, hub: Hub, number: int, folder: Path, places: list[str]) -> None:
        self.number = number
        self.folder = folder
        self.rows = dict.fromkeys(places, 0)
        """How many rows each place holds."""
        self.stuck = threading.Event()
        """Some function of the tap is where it blocks."""
        self._hub = hub
        self._came: Counter[tuple[str, int]] = Counter()
        self._changed = threading.Condition()
        self._grower: threading.Thread | None = None
        self._full = threading.Event()

    def came(self, kind: str, pid: int) -> int:
        """A connection of a process; how many of this kind it has made."""
        with self._changed:
            self._came[kind, pid] += 1
            self._changed.notify_all()
            if kind == "stuck":
                self.stuck.set()
            return self._came[kind, pid]

    def connections(self, kind: str, pid: int) -> int:
        """How many connections of a kind a process has made."""
        with self._changed:
            return self._came[kind, pid]

    def wait_for(self, kind: str, pid: int, count: int, seconds: float) -> bool:
        """Wait until a process has made so many connections of a kind; False: it has not."""
        with self._changed:
            return self._changed.wait_for(lambda: self._came[kind, pid] >= count, seconds)

    def grow(self, place: str, rows: int) -> None:
        """So many rows more at a place."""
        first = self.rows[place]
        with (self.folder / f"{place}.txt").open("ab") as file:
            file.write(b"".join(b"%09d\n" % n for n in range(first, first + rows)))
        self.rows[place] = first + rows
        self._hub.push(self.number)

    def keep_growing(self, rng: random.Random, rows: int, most: int) -> None:
        """Until told to stop, rows come at random: ``rows`` at a time, ``most`` in all."""

        def grow() -> None:
            left = most
            while left > 0 and not self._full.wait(rng.random() * 0.04):
                new = min(left, rng.randint(1, rows))
                self.grow(rng.choice(sorted(self.rows)), new)
                left -= new

        self._full.clear()
        self._grower = threading.Thread(target=grow, name="storm-grower", daemon=True)
        self._grower.start()

    def stop_growing(self) -> None:
        """From now on the source holds what it holds."""
        self._full.set()
        if self._grower is not None:
            self._grower.join()
            self._grower = None
