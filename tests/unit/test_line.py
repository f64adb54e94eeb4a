"""Standing in line for a commit: nobody is left waiting, and nobody is told what did not happen."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mooring.errors import MooringError, ServiceUnavailableError, UnknownOutcomeError
from mooring.store.line import Line, Waiter

PATIENCE_S = 30


class Guest(Waiter):
    """Hears what came of it."""

    def __init__(self) -> None:
        super().__init__()
        self.error: MooringError | None = None

    def fail(self, error: MooringError) -> None:
        self.error = error


class Counter:
    """Serves a line, holding the first batch until so many others wait."""

    def __init__(self, others: int = 0) -> None:
        self.line: Line[Guest] = Line()
        self.batches: list[int] = []
        self.is_serving = threading.Event()
        self._others = others
        self._at_once = threading.Lock()

    def ask(self, guest: Guest, failure: BaseException | None = None) -> None:
        with self.line.joined(guest) as is_first:
            if is_first:
                assert self._at_once.acquire(blocking=False), "two lead at once"
                try:
                    self._serve(failure)
                finally:
                    self._at_once.release()

    def _serve(self, failure: BaseException | None) -> None:
        with self.line.served() as batch:
            self.batches.append(len(batch))
            self.is_serving.set()
            if len(self.batches) == 1:
                self._await_others()
            if failure is not None:
                raise failure

    def _await_others(self) -> None:
        waited = threading.Event()
        for _ in range(PATIENCE_S * 1000):
            if len(self.line) >= self._others:
                return
            waited.wait(0.001)
        pytest.fail("the others never came")


def test_all_that_wait_are_served_at_once():
    counter, guests = Counter(others=7), [Guest() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(counter.ask, guests))
    assert counter.batches == [1, 7]
    assert all(guest.is_done and guest.error is None for guest in guests)
    assert len(counter.line) == 0


def test_many_who_come_again_and_again_are_all_served():
    counter = Counter()

    def ask_often(_: int) -> None:
        for _ in range(50):
            guest = Guest()
            counter.ask(guest)
            assert guest.is_done

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask_often, range(8)))
    assert sum(counter.batches) == 8 * 50


def test_what_fails_fails_for_all_of_the_batch_and_nobody_else():
    counter, first, second = Counter(others=1), Guest(), Guest()
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(counter.ask, first, ServiceUnavailableError("no store"))
        assert counter.is_serving.wait(PATIENCE_S)
        other = pool.submit(counter.ask, second)
        one.result(PATIENCE_S)
        other.result(PATIENCE_S)
    assert isinstance(first.error, ServiceUnavailableError)
    assert second.error is None


def test_whoever_is_cut_off_while_leading_leaves_others_in_the_know_and_the_line_moving():
    counter = Counter(others=2)
    first, others = Guest(), [Guest(), Guest()]
    with ThreadPoolExecutor(3) as pool:
        one = pool.submit(counter.ask, first, KeyboardInterrupt())
        assert counter.is_serving.wait(PATIENCE_S)
        rest = [pool.submit(counter.ask, other) for other in others]
        with pytest.raises(KeyboardInterrupt):
            one.result(PATIENCE_S)
        for each in rest:
            each.result(PATIENCE_S)
    assert isinstance(first.error, UnknownOutcomeError)
    assert all(other.is_done and other.error is None for other in others)


def test_a_leader_that_fails_before_it_serves_takes_only_itself_out():
    line: Line[Guest] = Line()

    def fail_early() -> None:
        with line.joined(Guest()) as is_first:
            assert is_first
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_early()
    assert len(line) == 0
    with line.joined(Guest()) as is_first, line.served() as batch:
        assert is_first
        assert len(batch) == 1


def test_one_that_is_interrupted_while_it_waits_does_not_stop_the_line():
    class Interrupted(Guest):
        def sleep(self) -> None:
            raise KeyboardInterrupt

    counter, last = Counter(), Guest()
    with ThreadPoolExecutor(1) as pool, counter.line.joined(Guest()) as is_first:
        assert is_first
        with pytest.raises(KeyboardInterrupt):
            counter.ask(Interrupted())
        assert len(counter.line) == 1
        waiting = pool.submit(counter.ask, last)
        with counter.line.served():
            pass
    waiting.result(PATIENCE_S)
    assert last.is_done
