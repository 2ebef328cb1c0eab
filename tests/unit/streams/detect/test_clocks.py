"""A wrong clock is told apart from a batch that had to wait."""

from streams.operators.detect.clocks import BATCHES, Clocks

SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND


def clocks(*behind_seconds: float) -> Clocks:
    made = Clocks()
    for behind in behind_seconds:
        made.sent("c", "n", NOW, NOW + round(behind * SECOND))
    return made


def test_batches_that_waited_for_the_broker_move_nothing() -> None:
    assert clocks(0.2, 60, 59, 58).corrected("c", "n", NOW) == NOW


def test_a_clock_that_was_set_is_noticed_within_two_spans() -> None:
    assert clocks(0.2, *[90.3] * (2 * BATCHES)).corrected("c", "n", NOW) == NOW + 90 * SECOND
    assert clocks(-3600, *[0.1] * (2 * BATCHES)).corrected("c", "n", NOW) == NOW


def test_nodes_of_equal_name_in_two_clusters_have_clocks_of_their_own() -> None:
    made = clocks(-100)
    made.sent("d", "n", NOW, NOW)
    assert (made.corrected("c", "n", NOW), made.corrected("d", "n", NOW)) == (NOW - 100 * SECOND, NOW)
    assert made.wrong() == 1
    made.forget("c", "n")
    assert made.corrected("c", "n", NOW) == NOW


def test_a_batch_that_does_not_say_when_it_was_sent_says_nothing() -> None:
    made = Clocks()
    made.sent("c", "n", 0, NOW)
    made.sent("c", "n", NOW, 0)
    assert made.corrected("c", "n", NOW) == NOW
