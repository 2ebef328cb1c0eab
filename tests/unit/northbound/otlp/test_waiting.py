"""The queue before the endpoint: in order, within its bytes, counting what it loses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xpulse.northbound.otlp.waiting import Packed, Waiting


def test_a_message_comes_back_as_it_was() -> None:
    message = b"hw.power" * 1000
    packed = Packed.of(message, 5)
    assert (packed.message(), packed.points) == (message, 5)
    assert len(packed.body) < len(message) / 20


def test_the_oldest_goes_first_and_is_counted() -> None:
    waiting = Waiting(100)
    assert [waiting.put(Packed(bytes(40), n)) for n in (1, 2, 3)] == [0, 0, 1]
    assert [waiting.pop().points for _ in range(2)] == [2, 3]
    assert (waiting.size_bytes, waiting.points, len(waiting)) == (0, 0, 0)


def test_one_that_is_larger_than_all_room_is_still_sent() -> None:
    waiting = Waiting(100)
    waiting.put(Packed(bytes(10), 1))
    assert waiting.put(Packed(bytes(500), 2)) == 1
    assert waiting.head().points == 2


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), max_size=40))
def test_nothing_is_lost_uncounted(sizes: list[tuple[int, int]]) -> None:
    waiting = Waiting(100)
    lost = sum(waiting.put(Packed(bytes(size), points)) for size, points in sizes)
    assert waiting.size_bytes <= 100
    assert lost + waiting.points == sum(points for _, points in sizes)
