"""The Merkle tree of RFC 6962 over SHA-256, as pure functions: what a log's root is, and what proves it to an outsider.

A tree of `size` leaves splits at the largest power of two below `size`; leaves and nodes are hashed with different first bytes, so that
neither can pass for the other. Section numbers are those of RFC 9162, which keeps the tree and states the verifiers.

Hashes are 32 raw bytes; leaves are numbered from 0. Those who prove hold the leaf hashes and are told by `ValueError` of a tree that does
not exist; those who verify are handed a stranger's numbers and bytes, and get True or False, whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

HASH_BYTES = 32
MAX_SIZE = 2**64 - 1
"""The largest tree of RFC 9162, whose sizes are unsigned 64-bit integers."""

EMPTY_ROOT = sha256(b"").digest()
"""The root of the tree without leaves (section 2.1.1)."""


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf (section 2.1.1)."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of the node over two subtrees (section 2.1.1)."""
    return sha256(b"\x01" + left + right).digest()


def root(leaf_hashes: Sequence[bytes]) -> bytes:
    """The root of the tree over `leaf_hashes` (section 2.1.1)."""
    level = leaf_hashes
    while len(level) > 1:
        level = _parents(level)
    return level[0] if level else EMPTY_ROOT


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a growing tree: all that is needed to append a leaf, and to name the root.

    Its `peaks` are the roots of the complete subtrees that make up the tree, one for each bit set in `size`, the largest first: 64 at
    most. It is a value: `append` returns the next one, so a transaction that is rolled back leaves the old one in hand.
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def append(self, leaf_hash: bytes) -> Frontier:
        """The frontier with one leaf more. Costs two hashes on average."""
        peaks, node, complete = list(self.peaks), leaf_hash, self.size
        while complete & 1:
            node = node_hash(peaks.pop(), node)
            complete >>= 1
        return Frontier(self.size + 1, (*peaks, node))

    def root(self) -> bytes:
        """The root of the tree so far."""
        if not self.peaks:
            return EMPTY_ROOT
        node = self.peaks[-1]
        for peak in self.peaks[-2::-1]:
            node = node_hash(peak, node)
        return node

    def to_bytes(self) -> bytes:
        """The peaks, one after another. The size is stored beside them."""
        return b"".join(self.peaks)

    @classmethod
    def from_bytes(cls, size: int, data: bytes) -> Frontier:
        """The frontier that `to_bytes` wrote at `size`.

        Raises `ValueError` when a tree of that size does not have as many peaks.
        """
        if not 0 <= size <= MAX_SIZE or len(data) != HASH_BYTES * size.bit_count():
            raise ValueError("expected 32 bytes for each bit set in the size; the stored frontier has another length. Rebuild it.")
        return cls(size, tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)))


def inclusion_proof(leaf_hashes: Sequence[bytes], index: int, size: int | None = None) -> list[bytes]:
    """What proves leaf `index` to be in the tree of the first `size` leaves, all of them by default (section 2.1.3.1).

    The hashes stand from the leaf up. Raises `ValueError` when there is no such tree or leaf.
    """
    size = len(leaf_hashes) if size is None else size
    if not 0 <= index < size <= len(leaf_hashes):
        raise ValueError(f"expected an index below the size, and a size of at most {len(leaf_hashes):,}; found {index:,} and {size:,}.")
    proof = []
    level = leaf_hashes[:size]
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        level = _parents(level)
        index >>= 1
    return proof


def verify_inclusion(leaf_hash: bytes, *, index: int, size: int, proof: Sequence[bytes], tree_root: bytes) -> bool:
    """Whether `proof` shows that `leaf_hash` is leaf `index` of the tree of `size` leaves under `tree_root` (section 2.1.3.2)."""
    if not (0 <= index < size <= MAX_SIZE and _are_hashes([leaf_hash, tree_root, *proof])):
        return False
    roots = _climb(leaf_hash, index, size - 1, proof)
    return roots is not None and roots[1] == tree_root


def consistency_proof(leaf_hashes: Sequence[bytes], old_size: int, new_size: int | None = None) -> list[bytes]:
    """What proves that the tree of `new_size` leaves, all of them by default, begins with that of `old_size` (section 2.1.4.1).

    Every tree begins with the empty one and with itself, which needs no hashes. Raises `ValueError` when there are no such trees.
    """
    new_size = len(leaf_hashes) if new_size is None else new_size
    if not 0 <= old_size <= new_size <= len(leaf_hashes):
        raise ValueError(f"expected sizes in order, of at most {len(leaf_hashes):,}; found {old_size:,} and {new_size:,}.")
    return _subproof(old_size, leaf_hashes[:new_size], known=True) if old_size else []


def verify_consistency(*, old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the tree under `new_root` begins with that under `old_root` (section 2.1.4.2)."""
    if not (0 <= old_size <= new_size <= MAX_SIZE and _are_hashes([old_root, new_root, *proof])):
        return False
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT and (new_size > 0 or new_root == EMPTY_ROOT)
    if old_size == new_size:
        return not proof and old_root == new_root
    at, last, hashes = old_size - 1, new_size - 1, list(proof)
    if old_size.bit_count() == 1:  # the old tree is a node of the new one, so the proof need not repeat its hash
        hashes.insert(0, old_root)
    while at & 1:  # up to the node over the last complete subtree of the old tree
        at, last = at >> 1, last >> 1
    return bool(hashes) and _climb(hashes[0], at, last, hashes[1:]) == (old_root, new_root)


def _climb(node: bytes, at: int, last: int, siblings: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """The roots of the tree that ends with `node` and of the whole tree, or None when `siblings` are too few or too many.

    `node` is number `at` of its level, whose last is number `last` (the fn and sn of sections 2.1.3.2 and 2.1.4.2).
    """
    old = new = node
    for sibling in siblings:
        if last == 0:
            return None
        if at & 1 or at == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while at and not at & 1:  # without a sibling on this level, the node is its own parent
                at, last = at >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        at, last = at >> 1, last >> 1
    return (old, new) if last == 0 else None


def _subproof(old_size: int, leaf_hashes: Sequence[bytes], *, known: bool) -> list[bytes]:
    """SUBPROOF of section 2.1.4.1; `known` says that the verifier has the old root, of which this subtree is then the whole."""
    size = len(leaf_hashes)
    if old_size == size:
        return [] if known else [root(leaf_hashes)]
    split = 1 << (size - 1).bit_length() - 1  # the largest power of two below `size`
    left, right = leaf_hashes[:split], leaf_hashes[split:]
    if old_size <= split:
        return [*_subproof(old_size, left, known=known), root(right)]
    return [*_subproof(old_size - split, right, known=False), root(left)]


def _parents(level: Sequence[bytes]) -> list[bytes]:
    """The level above: a node for every pair, and a last one without a pair as it is."""
    parents = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
    return [*parents, level[-1]] if len(level) % 2 else parents


def _are_hashes(values: Sequence[bytes]) -> bool:
    """Whether all are 32 bytes. Others could be joined to the same node from two different pairs."""
    return all(len(value) == HASH_BYTES for value in values)
