"""One card's read: asks what is due, understands it, and says what the card is; knows nothing of the other cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from collectors.nvidia.device_info import set_fabric
from collectors.nvidia.fast_fields import PROFILED, Last, fast_changes, fast_fields
from collectors.nvidia.identity import license_state
from collectors.nvidia.links import link_fields
from collectors.nvidia.readings import all_absent, dead, lost, refuse_impossible_memory
from collectors.nvidia.reply import FAILED, NOT_SUPPORTED, Count32, Replies
from collectors.nvidia.slow_fields import slow_fields
from collectors.nvidia.source import Source
from collectors.nvidia.unified import is_unified, set_unified
from schemas.builder import SampleBuilder

if TYPE_CHECKING:
    from collectors.nvidia.cards import Card

SESSION_CODES: Final = frozenset((1, 9, 18, 999))
"""Uninitialized, driver not loaded, library of another version, unknown: where everything says so it is not the card."""

_NO_ACTIVITY: Final[Replies] = dict.fromkeys((reply for _, reply in PROFILED), FAILED[NOT_SUPPORTED])


def read_card(source: Source, card: Card, *, slow: bool, at: float, meminfo: Callable[[], str]) -> SampleBuilder:
    """Every due field said or absent; sets `card.lost` and `card.dead`. `at` is the monotonic clock in seconds."""
    uid, index = card.info.uid, card.index
    if card.lost or card.fast is None:
        card.lost, card.last = True, None
        return all_absent(uid, index, "lost")
    replies = card.fast.read(everything=slow or not card.read_at)
    if not card.fast.all_answered:
        card.lost, card.dead = lost(replies), dead(replies) or 0
        if card.lost or card.dead in SESSION_CODES:
            card.last = None
            return all_absent(uid, index, "lost" if card.lost else "error", slow=card.lost or slow)
    card.dead = 0
    _memory(card, replies, slow=slow, meminfo=meminfo)
    profile = card.profiler.read() if card.profiler is not None else _NO_ACTIVITY
    builder = None
    if card.last is not None and not slow:
        builder = fast_changes(card.last, replies, profile, card.memory)
    if builder is None:
        builder = SampleBuilder(uid, index)
        fast_fields(builder, replies, profile, card.memory, mig=card.mig, seconds=at - card.read_at if card.read_at else 0.0)
    card.last = None if slow or card.mig else Last(replies, profile, builder)
    card.read_at = at
    if slow:
        _read_slow(source, card, builder, replies)
    return builder


def _memory(card: Card, replies: Replies, *, slow: bool, meminfo: Callable[[], str]) -> None:
    if slow:
        card.unified = is_unified(replies)
        total = replies.get("memory_total_bytes")
        card.info.memory_kind = "unified" if card.unified else "discrete" if isinstance(total, int) else card.info.memory_kind
    if card.unified:
        set_unified(replies, meminfo)
    else:
        refuse_impossible_memory(replies)


def _read_slow(source: Source, card: Card, builder: SampleBuilder, replies: Replies) -> None:
    assert card.slow is not None
    counted = replies.get("pcie_tx_bytes")
    counts = isinstance(counted, int) or (isinstance(counted, Count32) and card.profiler is not None)
    more = card.slow.read(counts_pcie_bytes=counts)
    license = license_state(source, card.handle, card.virtualization)
    if license is not None:
        more["license"] = license
    card.lost = lost(more)
    slow_fields(builder, more | replies, card.limits)
    set_fabric(card.info, more)
    if card.links is None:
        link_fields(builder, FAILED[NOT_SUPPORTED], [])
        return
    count, links = card.links.read()
    messages = link_fields(builder, count, links)
    for message in messages:
        builder.link(message)
    card.remote_bdfs = tuple(message.remote_bdf for message in messages if message.remote_bdf)
