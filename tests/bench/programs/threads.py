"""The same replies fetched by bare threads, and thrown away: how fast the source lets so many at a time be.

Run as: threads.py VARIANT WORK ROWS (VARIANT is not looked at); WORK is ``workers-4`` for 4 threads. Each takes an
account at a time, as a worker does. Nothing is parsed, and nothing is written.
"""

from __future__ import annotations

import os
import sys
import threading

import clock
import replies


def fetch(at_a_time: int, count: int) -> None:
    """All replies, by so many threads; an error of one of them ends the process with it."""
    accounts, of_each = replies.accounts(count)
    todo, failed = iter(range(accounts)), []
    lock = threading.Lock()

    def work() -> None:
        source = replies.Source(os.environ["BENCH_SOURCE"])
        try:
            while True:
                with lock:
                    account = next(todo, None)
                if account is None:
                    return
                for number in range(account * of_each, (account + 1) * of_each):
                    source.get(number)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(at_a_time)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    with clock.measured():
        fetch(int(sys.argv[2].split("-")[1]), int(sys.argv[3]))
