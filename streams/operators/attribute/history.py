"""Who held which device of one node when: the intervals of its allocation snapshots, kept 15 minutes past their end."""

from __future__ import annotations

from typing import Final, NamedTuple

from schemas.telemetry import v1

KEPT_NS: Final = 15 * 60 * 1_000_000_000
"""How long an ended interval stays in the agent's snapshots (ARCHITECTURE §5), and here."""

_OPEN: Final = 2**63
_REPEATS_NS: Final = 60 * 1_000_000_000
"""How long a snapshot that says the same again only moves the watermark; then it is taken in anew, which forgets what is too old."""


class Holding(NamedTuple):
    """A workload holds a device from `started_at_ns` until before `ended_at_ns`.

    `weight` is the promised share, 1 where none was said. `row` is what an only holder gives to an Attributed row (workload,
    allocation, state known), serialised once: merging bytes into a row is the cheapest way to fill it.
    """

    started_at_ns: int
    ended_at_ns: int
    device_uid: str
    id: str
    weight: float
    row: bytes


class _Steady(NamedTuple):
    """The holders of a device do not change from `from_ns` until before `until_ns`."""

    from_ns: int
    until_ns: int
    holders: list[Holding] | None


class History:
    """The intervals of one node. `watermark_ns` is the newest instant that a snapshot speaks of; 0 before the first."""

    __slots__ = ("_by_device", "_by_id", "_intervals", "_steady", "_taken_ns", "covered_since_ns", "watermark_ns")

    def __init__(self) -> None:
        self.watermark_ns = 0
        self.covered_since_ns = 0
        self._intervals = b""
        self._taken_ns = 0
        self._by_id: dict[str, Holding] = {}
        self._by_device: dict[str, list[Holding]] = {}
        self._steady: dict[str, _Steady] = {}

    def take(self, snapshot: v1.AllocationSnapshot) -> bool:
        """Take a snapshot in; False, and nothing changes, where it is older than what is known.

        A snapshot replaces what was known of each interval it lists. An interval that was open and is no longer listed (the agent
        lost its memory) ended at this snapshot; ended ones that are no longer listed stay until they are too old.
        """
        at_ns = snapshot.taken_at_ns
        if at_ns < self.watermark_ns:
            return False
        # Most snapshots repeat the last one: then only the time moves.
        intervals = v1.AllocationSnapshot(open=snapshot.open, ended=snapshot.ended).SerializeToString()
        if intervals == self._intervals and at_ns - self._taken_ns < _REPEATS_NS:
            self.watermark_ns = at_ns
            return True
        self._intervals, self._taken_ns = intervals, at_ns
        oldest_ns = at_ns - KEPT_NS
        # Without an unbroken line of snapshots nothing is known of what ended before this one's own memory.
        self.covered_since_ns = oldest_ns if self.watermark_ns < oldest_ns else max(self.covered_since_ns, oldest_ns)
        self.watermark_ns = at_ns
        told = {a.id: _holding(a) for a in (*snapshot.ended, *snapshot.open)}
        kept = {i: h._replace(ended_at_ns=min(h.ended_at_ns, at_ns)) for i, h in self._by_id.items() if i not in told}
        self._by_id = {i: h for i, h in (kept | told).items() if h.ended_at_ns > oldest_ns}
        self._by_device = {}
        self._steady = {}
        for holding in self._by_id.values():
            self._by_device.setdefault(holding.device_uid, []).append(holding)
        for holdings in self._by_device.values():
            holdings.sort(key=lambda h: (h.started_at_ns, h.id))
        return True

    def holders(self, device_uid: str, at_ns: int) -> list[Holding] | None:
        """Who held the device at that instant, in order of their start; None where the history does not reach back so far."""
        steady = self._steady.get(device_uid)
        if steady is None or not steady.from_ns <= at_ns < steady.until_ns:
            steady = self._steady[device_uid] = self._steady_around(device_uid, at_ns)
        return steady.holders

    def _steady_around(self, device_uid: str, at_ns: int) -> _Steady:
        holdings = self._by_device.get(device_uid, [])
        found = [h for h in holdings if h.started_at_ns <= at_ns < h.ended_at_ns]
        bounds = [b for h in holdings for b in (h.started_at_ns, h.ended_at_ns)] + [0, self.covered_since_ns, _OPEN]
        return _Steady(
            max((b for b in bounds if b <= at_ns), default=at_ns),
            min((b for b in bounds if b > at_ns), default=at_ns + 1),
            found if found or at_ns >= self.covered_since_ns else None,
        )


def _holding(allocation: v1.Allocation) -> Holding:
    ended_at_ns = allocation.ended_at_ns if allocation.HasField("ended_at_ns") else _OPEN
    weight = allocation.share_ratio if allocation.HasField("share_ratio") and allocation.share_ratio > 0 else 1.0
    row = v1.Attributed(
        owner_state=v1.OwnerState.OWNER_STATE_KNOWN, share_ratio=1.0, workload=allocation.workload, allocation_id=allocation.id
    )
    return Holding(allocation.started_at_ns, ended_at_ns, allocation.device_uid, allocation.id, weight, row.SerializeToString())
