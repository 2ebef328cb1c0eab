"""Takes out of a tape what names a customer's hardware: each serial and UUID becomes another of the same length, the same everywhere.

The replacements are made with a key that is thrown away: two tapes of one card do not show that it is one.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import uuid
from collections.abc import Iterable
from typing import Final

from collectors.nvidia.tape.calls import Said

SECRET_CALLS: Final = frozenset(
    {"nvmlDeviceGetUUID", "nvmlDeviceGetSerial", "nvmlVgpuInstanceGetUUID", "nvmlVgpuInstanceGetVmID", "nvmlDeviceGetMdevUUID"}
)
"""Calls whose answer is a text that names one piece of hardware or a machine."""

SECRET_BYTES: Final = {"nvmlDeviceGetPlatformInfo": (4, 20), "nvmlDeviceGetGpuFabricInfoV": (4, 20)}
"""Calls whose struct has a number of 16 bytes that names hardware, from and to: the InfiniBand GUID, the fabric's UUID."""

SECRET_TEXT: Final = {"nvmlDeviceGetPlatformInfo": (20, 36)}
"""Calls whose struct has a text that does: the chassis' serial."""

_PREFIX: Final = re.compile(rb"^(?:GPU-|MIG-GPU-|MIG-)")
_LEAST: Final = 4
"""A shorter text names nothing, and replacing it everywhere would change numbers."""


class Redaction:
    """`learn` all of a tape first, then `said` and `text`."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._words: dict[bytes, bytes] = {}

    @property
    def count(self) -> int:
        """How many texts are replaced."""
        return len(self._words)

    def learn(self, said: Iterable[Said]) -> None:
        for one in said:
            symbol = one.key.partition(" ")[0]
            if one.code:
                continue
            if symbol in SECRET_CALLS:
                for out in one.outs:
                    self._add(out.partition(b"\0")[0])
            if symbol in SECRET_TEXT:
                first, end = SECRET_TEXT[symbol]
                self._add(one.outs[-1][first:end].partition(b"\0")[0])
            if symbol in SECRET_BYTES:  # as a text it is written otherwise
                first, end = SECRET_BYTES[symbol]
                secret = one.outs[-1][first:end]
                words = [str(uuid.UUID(bytes=data)).encode() for data in (secret, self._noise(secret))]
                self._words.setdefault(*words)

    def said(self, one: Said) -> Said:
        symbol = one.key.partition(" ")[0]
        outs = tuple(self._replaced(out) for out in one.outs)
        if symbol in SECRET_BYTES and outs:
            first, end = SECRET_BYTES[symbol]
            last = outs[-1]
            outs = (*outs[:-1], last[:first] + self._noise(one.outs[-1][first:end]) + last[end:])
        return Said(self._replaced(one.key.encode()).decode(), one.code, outs, one.microseconds)

    def text(self, text: str) -> str:
        return self._replaced(text.encode()).decode()

    def _add(self, word: bytes) -> None:
        if len(word) >= _LEAST and word not in self._words:
            kept = _PREFIX.match(word)
            head = kept.group() if kept else b""
            self._words[word] = head + self._other(word[len(head) :])
            if head:  # the bare UUID, as some texts have it
                self._words.setdefault(word[len(head) :], self._words[word][len(head) :])

    def _replaced(self, data: bytes) -> bytes:
        for word in sorted(self._words, key=len, reverse=True):
            if word in data:
                data = data.replace(word, self._words[word])
        return data

    def _other(self, word: bytes) -> bytes:
        """Another text of the same shape: digits stay digits, letters letters of their case and kind."""
        noise = self._stream(word, len(word))
        return bytes(_same_kind(char, number) for char, number in zip(word, noise, strict=True))

    def _noise(self, data: bytes) -> bytes:
        """Bytes for bytes; zeros, which say that there is nothing, stay. Printable ones stay printable."""
        if not any(data):
            return data
        noise = self._stream(data, len(data))
        return bytes(
            0 if not byte else _same_kind(byte, number) if byte < 128 else number or 1 for byte, number in zip(data, noise, strict=True)
        )

    def _stream(self, seed: bytes, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += hashlib.blake2b(seed + len(found).to_bytes(4, "big"), key=self._key).digest()
        return found[:size]


_KINDS: Final = ("0123456789", "abcdef", "ABCDEF", "ghijklmnopqrstuvwxyz", "GHIJKLMNOPQRSTUVWXYZ")


def _same_kind(char: int, number: int) -> int:
    letter = chr(char)
    if letter not in string.ascii_letters + string.digits:
        return char
    kind = next(kind for kind in _KINDS if letter in kind)
    return ord(kind[number % len(kind)])
