"""Connections that wait: which are used again, and which are not."""

import pytest

from burler.errors import SqlError
from support.internals import sql_pool


class Link:
    """A connection that may be dead."""

    def __init__(self):
        self.alive, self.closed, self.asked = True, False, 0

    def ask(self, _sql):
        self.asked += 1
        if not self.alive:
            raise OSError("server closed the connection")

    def end(self):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def clock():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


def test_a_link_is_used_again_without_a_question_while_it_is_warm(clock):
    pool = sql_pool.Pool(Link, clock)
    link = pool.take()
    pool.give_back(link, whole=True)
    clock.now = 0.9
    assert pool.take() is link
    assert link.asked == 0


def test_a_link_that_died_overnight_is_not_used_again(clock):
    pool = sql_pool.Pool(Link, clock)
    link = pool.take()
    pool.give_back(link, whole=True)
    clock.now, link.alive = 36_000.0, False
    other = pool.take()
    assert other is not link
    assert link.closed and not other.closed


def test_a_link_that_lives_is_used_again_after_a_night(clock):
    pool = sql_pool.Pool(Link, clock)
    link = pool.take()
    pool.give_back(link, whole=True)
    clock.now = 36_000.0
    assert pool.take() is link
    assert link.asked == 1


def test_a_link_in_which_something_went_wrong_is_closed(clock):
    pool = sql_pool.Pool(Link, clock)
    link = pool.take()
    pool.give_back(link, whole=False)
    assert link.closed
    assert pool.take() is not link


def test_a_pool_that_is_closed_closes_what_waits_and_what_comes_back(clock):
    pool = sql_pool.Pool(Link, clock)
    waiting, used = pool.take(), pool.take()
    pool.give_back(waiting, whole=True)
    pool.close()
    assert waiting.closed and not used.closed
    pool.give_back(used, whole=True)
    assert used.closed
    with pytest.raises(SqlError, match="the database was closed"):
        pool.take()
