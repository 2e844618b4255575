"""XXH3 with 64 bits and seed 0: the hash that Kafka keeps of the topics of a group (KIP-1101).

Written for inputs of a few kilobytes that are hashed once. Not here: seeds, other secrets, streams.
"""

from struct import Struct
from typing import Final

__all__ = ["xxh3_64"]

_MASK: Final = (1 << 64) - 1
_MASK_32: Final = (1 << 32) - 1
_PRIME_32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME_64: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES: Final = 64
_STRIPES_OF_A_BLOCK: Final = 16
_BLOCK_BYTES: Final = _STRIPE_BYTES * _STRIPES_OF_A_BLOCK
_LAST_SECRET_AT: Final = len(_SECRET) - _STRIPE_BYTES
_STRIPE: Final = Struct("<8Q")
_INT64: Final = Struct("<Q")
_INT32: Final = Struct("<I")


def xxh3_64(data: bytes) -> int:
    """Return the hash, as an unsigned number."""
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 240:
        return _medium(data, size)
    return _long(data, size)


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _word(data, 0) ^ _secret(24) ^ _secret(32)
        high = _word(data, size - 8) ^ _secret(40) ^ _secret(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _folded(low, high))
    if size >= 4:
        both = _half(data, size - 4) + (_half(data, 0) << 32)
        return _mixed(both ^ _secret(8) ^ _secret(16), size)
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        return _old_avalanche(combined ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))
    return _old_avalanche(_secret(56) ^ _secret(64))


def _medium(data: bytes, size: int) -> int:
    total = size * _PRIME_64[0]
    if size <= 128:
        for pair in range((size - 1) // 32, -1, -1):
            total += _mix(data, 16 * pair, 32 * pair)
            total += _mix(data, size - 16 * (pair + 1), 32 * pair + 16)
        return _avalanche(total)
    for number in range(8):
        total += _mix(data, 16 * number, 16 * number)
    total = _avalanche(total)
    for number in range(8, size // 16):
        total += _mix(data, 16 * number, 16 * (number - 8) + 3)
    return _avalanche(total + _mix(data, size - 16, 136 - 17))


def _long(data: bytes, size: int) -> int:
    sums = [_PRIME_32[2], *_PRIME_64[:4], _PRIME_32[1], _PRIME_64[4], _PRIME_32[0]]
    stripes = (size - 1) // _STRIPE_BYTES
    for number in range(stripes):
        at = number % _STRIPES_OF_A_BLOCK
        _accumulate(sums, data, number * _STRIPE_BYTES, 8 * at)
        if at == _STRIPES_OF_A_BLOCK - 1 and (number + 1) * _STRIPE_BYTES <= size - 1:
            _scramble(sums)
    _accumulate(sums, data, size - _STRIPE_BYTES, _LAST_SECRET_AT - 7)
    total = size * _PRIME_64[0]
    for pair in range(4):
        low = sums[2 * pair] ^ _secret(11 + 16 * pair)
        high = sums[2 * pair + 1] ^ _secret(11 + 16 * pair + 8)
        total += _folded(low, high)
    return _avalanche(total)


def _accumulate(sums: list[int], data: bytes, at: int, secret_at: int) -> None:
    keys = _STRIPE.unpack_from(_SECRET, secret_at)
    for lane, value in enumerate(_STRIPE.unpack_from(data, at)):
        keyed = value ^ keys[lane]
        sums[lane ^ 1] = (sums[lane ^ 1] + value) & _MASK
        sums[lane] = (sums[lane] + (keyed & _MASK_32) * (keyed >> 32)) & _MASK


def _scramble(sums: list[int]) -> None:
    for lane, key in enumerate(_STRIPE.unpack_from(_SECRET, _LAST_SECRET_AT)):
        value = sums[lane]
        sums[lane] = ((value ^ value >> 47 ^ key) * _PRIME_32[0]) & _MASK


def _mix(data: bytes, at: int, secret_at: int) -> int:
    low = _word(data, at) ^ _secret(secret_at)
    return _folded(low, _word(data, at + 8) ^ _secret(secret_at + 8))


def _folded(low: int, high: int) -> int:
    product = low * high
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value &= _MASK
    value = ((value ^ value >> 37) * 0x165667919E3779F9) & _MASK
    return value ^ value >> 32


def _old_avalanche(value: int) -> int:
    value = ((value ^ value >> 33) * _PRIME_64[1]) & _MASK
    value = ((value ^ value >> 29) * _PRIME_64[2]) & _MASK
    return value ^ value >> 32


def _mixed(value: int, size: int) -> int:
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = (value * 0x9FB21C651E98DF25) & _MASK
    value = ((value ^ (value >> 35) + size) * 0x9FB21C651E98DF25) & _MASK
    return value ^ value >> 28


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _word(data: bytes, at: int) -> int:
    value: int = _INT64.unpack_from(data, at)[0]
    return value


def _half(data: bytes, at: int) -> int:
    value: int = _INT32.unpack_from(data, at)[0]
    return value


def _secret(at: int) -> int:
    return _word(_SECRET, at)
