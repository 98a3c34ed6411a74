"""Waits that poll a condition. Only samplers and stand-ins sleep elsewhere in the suite."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotSeenError(AssertionError):
    """The condition did not become true in time."""


def until(found: Callable[[], T | None], timeout: float, what: str, every: float = 0.5) -> T:
    """Waits until ``found`` returns something true, and returns it."""
    deadline = time.monotonic() + timeout
    while True:
        if result := found():
            return result
        if time.monotonic() >= deadline:
            raise NotSeenError(f"{what}: not seen in {timeout:g} s")
        time.sleep(every)


def hold(seconds: float, holds: Callable[[], object], what: str, every: float = 0.2) -> None:
    """Lets a state last for some seconds. Fails as soon as ``holds`` is false."""
    begin = time.monotonic()
    while True:
        lasted = time.monotonic() - begin
        assert holds(), f"{what}: ended after {lasted:.1f} s, before {seconds:g} s were over"
        if lasted >= seconds:
            return
        time.sleep(min(every, seconds - lasted))


def next_second() -> None:
    """Waits until the clock shows another whole second, because creation times are in whole seconds."""
    before = int(time.time())
    until(lambda: int(time.time()) > before, 5, "the next whole second", every=0.02)
