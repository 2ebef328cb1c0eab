"""What was written last stays; what makes room for it is counted."""

import copy

from schemas.recent import Recent


def test_the_one_not_written_for_longest_makes_room() -> None:
    kept: Recent[str, int] = Recent(2)
    for key in ("a", "b", "a", "c"):
        kept[key] = kept.get(key, 0) + 1
    assert (dict(kept), kept.dropped) == ({"a": 2, "c": 1}, 1)


def test_a_copy_has_the_same_limit_and_order() -> None:
    kept: Recent[str, int] = Recent(2)
    kept["a"], kept["b"] = 1, 2
    other = copy.deepcopy(kept)
    other["c"] = 3
    assert (list(kept), list(other), other.dropped) == (["a", "b"], ["b", "c"], 1)
