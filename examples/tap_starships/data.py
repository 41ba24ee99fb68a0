"""What the shipyard knows: ships with their crew and log, and ports. The same rows for the same seed."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
CLASSES = ("FRIGATE", "FREIGHTER", "TUG")
_FIRST, _LAST = ("Ann", "Bo", "Cem", "Dee", "Eli", "Fay"), ("Ito", "Novak", "Okafor", "Silva", "Weiß")
_NAMES = ("Albatross", "Beagle", "Calypso", "Dauntless", "Endurance", "Fram", "Gannet", "Heron")


@dataclass(frozen=True)
class Member:
    """One of a crew."""

    id: str
    name: str
    rank: str
    joined: date


@dataclass(frozen=True)
class Entry:
    """A line of a ship's log: a docking at a port, or a jump."""

    id: str
    at: datetime
    port: str | None
    light_years: Decimal | None


@dataclass(frozen=True)
class Ship:
    """A ship, as it stands now."""

    id: str
    name: str
    kind: str
    mass_tons: Decimal
    odometer: int  # more than a double holds
    updated_at: datetime
    crew: tuple[Member, ...]
    log: tuple[Entry, ...]


class Data:
    """All rows; ships in the order of their changes. Several threads may read, and change ships."""

    def __init__(self, ships: int = 40, crew: int = 8, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.ports = [{"code": f"P{n:03}", "name": f"Port {self._pick(_LAST)}"} for n in range(1, 26)]
        # Whole hours of some days: ships that share a time are common.
        times = sorted(BEGIN + timedelta(hours=self._random.randrange(240)) for _ in range(ships))
        self._ships = [self._ship(number, at, crew) for number, at in enumerate(times, 1)]

    def ships(self, since: datetime | None = None) -> list[Ship]:
        """Ships that changed at `since` or later, oldest change first."""
        with self._lock:
            found = [ship for ship in self._ships if since is None or ship.updated_at >= since]
        return sorted(found, key=lambda ship: (ship.updated_at, ship.id))

    def change(self, count: int) -> list[str]:
        """Change some ships, each later than all changes before; their ids. Each gets one more in its crew."""
        with self._lock:
            changed = []
            for _ in range(count):
                at = max(ship.updated_at for ship in self._ships) + timedelta(minutes=1)
                place = self._random.randrange(len(self._ships))
                ship = self._ships[place]
                crew = (*ship.crew, self._member(ship.id, len(ship.crew) + 1))
                self._ships[place] = replace(ship, updated_at=at, crew=crew, odometer=ship.odometer + 1)
                changed.append(ship.id)
            return changed

    def _ship(self, number: int, at: datetime, crew: int) -> Ship:
        name = f"ship-{number:03}"
        log = [self._entry(name, line, at - timedelta(hours=line)) for line in range(1, self._random.randrange(2, 6))]
        return Ship(
            name,
            f"{self._pick(_NAMES)} {number}",
            self._pick(CLASSES),
            Decimal(self._random.randrange(10**7, 10**9)).scaleb(-3),
            2**53 + self._random.randrange(10**6),
            at,
            tuple(self._member(name, place) for place in range(1, self._random.randrange(crew + 1) + 1)),
            tuple(log),
        )

    def _member(self, ship: str, place: int) -> Member:
        joined = date(2020, 1, 1) + timedelta(days=self._random.randrange(1000))
        return Member(f"{ship}.crew-{place}", f"{self._pick(_FIRST)} {self._pick(_LAST)}", f"R{place}", joined)

    def _entry(self, ship: str, line: int, at: datetime) -> Entry:
        docking = self._random.random() < 0.5
        far = Decimal(self._random.randrange(1, 10**6)).scaleb(-4)
        return Entry(f"{ship}.log-{line}", at, self.ports[line]["code"] if docking else None, None if docking else far)

    def _pick(self, of: tuple[str, ...]) -> str:
        return self._random.choice(of)
