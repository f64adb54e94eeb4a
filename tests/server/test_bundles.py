"""Short looks share a thread, and none holds up another."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mooring.server.bundles import Bundles


def test_each_hears_what_came_of_its_own():
    async def ask() -> None:
        bundles, loop = Bundles(threads), asyncio.get_running_loop()

        def work(number: int) -> int:
            if number % 3 == 0:
                raise ValueError(number)
            return number

        for _ in range(20):
            futures = [bundles.add(loop, lambda n=n: work(n)) for n in range(50)]
            told = await asyncio.gather(*futures, return_exceptions=True)
            for number, one in enumerate(told):
                assert (one.args == (number,)) if number % 3 == 0 else (one == number)

    with ThreadPoolExecutor(4) as threads:
        asyncio.run(ask())


def test_what_comes_together_shares_a_thread():
    async def ask() -> list[int]:
        bundles, loop = Bundles(threads), asyncio.get_running_loop()
        return await asyncio.gather(*(bundles.add(loop, threading.get_ident) for _ in range(8)))

    with ThreadPoolExecutor(8) as threads:
        assert len(set(asyncio.run(ask()))) == 1


def test_one_that_takes_long_holds_up_neither_what_came_with_it_nor_what_comes_later():
    async def ask() -> None:
        bundles, loop = Bundles(threads), asyncio.get_running_loop()
        quick = [bundles.add(loop, lambda: "quick")]
        slow = bundles.add(loop, lambda: release.wait(30))
        quick += [bundles.add(loop, lambda: "quick") for _ in range(6)]
        assert await asyncio.gather(*quick) == ["quick"] * 7
        assert await bundles.add(loop, lambda: "later") == "later"
        assert not slow.done()
        release.set()
        assert await slow is True

    release = threading.Event()
    with ThreadPoolExecutor(4) as threads:
        asyncio.run(ask())


def test_nobody_waits_for_threads_that_are_closed():
    async def ask() -> None:
        threads = ThreadPoolExecutor(1)
        bundles, loop = Bundles(threads), asyncio.get_running_loop()
        threads.shutdown()
        with pytest.raises(RuntimeError):
            await bundles.add(loop, lambda: 1)

    asyncio.run(ask())


def test_whoever_gave_up_waiting_disturbs_nobody():
    async def ask() -> None:
        bundles, loop = Bundles(threads), asyncio.get_running_loop()
        gone = bundles.add(loop, lambda: 1)
        gone.cancel()
        assert await bundles.add(loop, lambda: 2) == 2

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(ask())
