"""The tree is RFC 6962's: its roots and proofs are the known ones, and a proof that was touched proves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refledger_schema.merkle import (
    EMPTY_ROOT,
    MAX_SIZE,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root,
    verify_consistency,
    verify_inclusion,
)

# The leaves and roots that the tests of Certificate Transparency's own implementations share.
CT_LEAVES = [
    leaf_hash(bytes.fromhex(data))
    for data in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
CT_INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CT_CONSISTENCY = {
    (1, 1): [],
    (1, 8): CT_INCLUSION[0, 8],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}

LEAVES = [leaf_hash(b"leaf %d" % number) for number in range(300)]
ROOTS = [root(LEAVES[:size]) for size in range(301)]
SMALL = range(65)
COARSE = [*range(0, 301, 7), 127, 128, 129, 255, 256, 257, 300]
SHAPES = [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 17, 21]
"""Sizes whose trees are alike in no way that matters to a proof."""


def hexes(hashes: Sequence[bytes]) -> list[str]:
    return [hash_.hex() for hash_ in hashes]


def rfc_root(leaf_data: Sequence[bytes]) -> bytes:
    """MTH, word for word from RFC 6962 section 2.1."""
    if not leaf_data:
        return sha256().digest()
    if len(leaf_data) == 1:
        return sha256(b"\x00" + leaf_data[0]).digest()
    k = max(2**power for power in range(10) if 2**power < len(leaf_data))
    return sha256(b"\x01" + rfc_root(leaf_data[:k]) + rfc_root(leaf_data[k:])).digest()


def included(index: int, size: int, proof: Sequence[bytes], leaf: bytes | None = None) -> bool:
    return verify_inclusion(LEAVES[index] if leaf is None else leaf, index=index, size=size, proof=proof, tree_root=ROOTS[size])


def consistent(old_size: int, new_size: int, proof: Sequence[bytes]) -> bool:
    return verify_consistency(old_size=old_size, new_size=new_size, old_root=ROOTS[old_size], new_root=ROOTS[new_size], proof=proof)


def touched(proof: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The proof with each of its bits flipped in turn, then shortened, lengthened, turned round and joined otherwise."""
    for at, hash_ in enumerate(proof):
        for bit in range(256):
            flipped = (int.from_bytes(hash_, "big") ^ 1 << bit).to_bytes(32, "big")
            yield [*proof[:at], flipped, *proof[at + 1 :]]
        yield [*proof[:at], *proof[at + 1 :]]
        yield [*proof[:at], hash_[:31], *proof[at + 1 :]]
    yield [*proof, LEAVES[-1]]
    yield [LEAVES[-1], *proof]
    if len(proof) > 1:
        yield [*proof[::-1]]


@pytest.mark.parametrize("size", range(9))
def test_the_roots_are_the_known_ones(size: int) -> None:
    frontier = Frontier()
    for hash_ in CT_LEAVES[:size]:
        frontier = frontier.append(hash_)
    assert (root(CT_LEAVES[:size]).hex(), frontier.root().hex()) == (CT_ROOTS[size], CT_ROOTS[size])


@pytest.mark.parametrize(("index", "size"), CT_INCLUSION)
def test_the_inclusion_proofs_are_the_known_ones(index: int, size: int) -> None:
    assert hexes(inclusion_proof(CT_LEAVES, index, size)) == CT_INCLUSION[index, size]


@pytest.mark.parametrize(("old_size", "new_size"), CT_CONSISTENCY)
def test_the_consistency_proofs_are_the_known_ones(old_size: int, new_size: int) -> None:
    assert hexes(consistency_proof(CT_LEAVES, old_size, new_size)) == CT_CONSISTENCY[old_size, new_size]


@pytest.mark.parametrize("size", [*SMALL, 127, 128, 129, 300])
def test_the_root_is_the_one_that_the_rfc_defines(size: int) -> None:
    assert ROOTS[size] == rfc_root([b"leaf %d" % number for number in range(size)])


def test_the_empty_tree_has_the_hash_of_nothing() -> None:
    assert (root([]), Frontier().root(), EMPTY_ROOT.hex()) == (EMPTY_ROOT, EMPTY_ROOT, CT_ROOTS[0])


def test_a_leaf_cannot_pass_for_a_node() -> None:
    left, right = LEAVES[:2]
    assert node_hash(left, right) != leaf_hash(left + right)


def test_the_frontier_has_the_root_of_every_size_and_survives_storage() -> None:
    frontier = Frontier()
    for size, hash_ in enumerate(LEAVES, start=1):
        frontier = Frontier.from_bytes(size, frontier.append(hash_).to_bytes())
        assert (frontier.size, frontier.root(), len(frontier.peaks)) == (size, ROOTS[size], size.bit_count())


def test_appending_leaves_the_old_frontier_as_it_was() -> None:
    old = Frontier().append(LEAVES[0])
    new = old.append(LEAVES[1])
    assert (old, new) == (Frontier(1, (LEAVES[0],)), Frontier(2, (node_hash(*LEAVES[:2]),)))


@pytest.mark.parametrize(("size", "length"), [(1, 0), (0, 32), (3, 63), (3, 65), (3, 96), (-1, 32), (2**64, 32)])
def test_a_stored_frontier_of_another_length_is_refused(size: int, length: int) -> None:
    with pytest.raises(ValueError, match="expected 32 bytes for each bit set in the size"):
        Frontier.from_bytes(size, bytes(length))


def test_the_largest_frontier_has_64_peaks() -> None:
    frontier = Frontier.from_bytes(MAX_SIZE, bytes(64 * 32))
    assert (len(frontier.peaks), len(frontier.to_bytes())) == (64, 2_048)


def test_every_leaf_is_proven_in_every_small_tree() -> None:
    assert [pair for pair in pairs(SMALL, SMALL) if pair[0] < pair[1] and not included(*pair, inclusion_proof(LEAVES, *pair))] == []


def test_every_small_tree_begins_with_every_smaller_one() -> None:
    assert [pair for pair in pairs(SMALL, SMALL) if pair[0] <= pair[1] and not consistent(*pair, consistency_proof(LEAVES, *pair))] == []


def test_larger_trees_are_proven_too() -> None:
    larger = [pair for pair in pairs(COARSE, COARSE) if pair[0] <= pair[1]]
    assert [pair for pair in larger if pair[0] < pair[1] and not included(*pair, inclusion_proof(LEAVES, *pair))] == []
    assert [pair for pair in larger if not consistent(*pair, consistency_proof(LEAVES, *pair))] == []


def test_the_whole_list_is_the_tree_when_no_size_is_named() -> None:
    assert (inclusion_proof(LEAVES, 5), consistency_proof(LEAVES, 5)) == (
        inclusion_proof(LEAVES, 5, 300),
        consistency_proof(LEAVES, 5, 300),
    )


@pytest.mark.parametrize("size", SHAPES)
def test_no_touched_inclusion_proof_is_accepted(size: int) -> None:
    for index in range(size):
        proof = inclusion_proof(LEAVES, index, size)
        assert not any(included(index, size, wrong) for wrong in touched(proof))


@pytest.mark.parametrize("new_size", SHAPES)
def test_no_touched_consistency_proof_is_accepted(new_size: int) -> None:
    for old_size in range(new_size + 1):
        proof = consistency_proof(LEAVES, old_size, new_size)
        assert not any(consistent(old_size, new_size, wrong) for wrong in touched(proof))


@pytest.mark.parametrize("size", SHAPES)
def test_a_proof_proves_no_other_leaf_and_no_other_place(size: int) -> None:
    proofs = [inclusion_proof(LEAVES, index, size) for index in range(size)]
    accepted = [
        (leaf, index, of)
        for leaf, index, of in ((leaf, index, of) for leaf in range(size) for index in range(size) for of in range(size))
        if included(index, size, proofs[of], LEAVES[leaf])
    ]
    assert accepted == [(index, index, index) for index in range(size)]


@pytest.mark.parametrize("size", SHAPES)
def test_a_tree_whose_past_was_changed_is_consistent_with_no_kept_root(size: int) -> None:
    for changed in range(size):
        forged = [*LEAVES[:changed], leaf_hash(b"forged"), *LEAVES[changed + 1 :]]
        accepted = [
            old_size
            for old_size in range(changed + 1, size + 1)
            if verify_consistency(
                old_size=old_size,
                new_size=size + 3,
                old_root=ROOTS[old_size],
                new_root=root(forged[: size + 3]),
                proof=consistency_proof(forged, old_size, size + 3),
            )
        ]
        assert accepted == []


def test_a_node_cut_elsewhere_is_refused_although_it_hashes_alike() -> None:
    left, right = LEAVES[:2]
    joined = left + right
    assert node_hash(joined[:31], joined[31:]) == ROOTS[2]
    assert not verify_inclusion(joined[31:], index=1, size=2, proof=[joined[:31]], tree_root=ROOTS[2])


def test_a_proof_longer_than_its_tree_is_high_is_refused_even_under_a_root_made_for_it() -> None:
    higher = node_hash(LEAVES[9], ROOTS[3])
    assert not verify_inclusion(LEAVES[0], index=0, size=3, proof=[*inclusion_proof(LEAVES, 0, 3), LEAVES[9]], tree_root=higher)


def test_a_tree_has_fewer_than_two_to_the_64_leaves() -> None:
    tree_root, accepted = LEAVES[0], []
    for height in range(67):
        if verify_inclusion(LEAVES[0], index=0, size=2**height, proof=[LEAVES[1]] * height, tree_root=tree_root):
            accepted.append(height)
        tree_root = node_hash(tree_root, LEAVES[1])
    assert accepted == list(range(64))


def test_the_empty_tree_is_proven_only_by_its_own_root() -> None:
    assert [
        verify_consistency(old_size=0, new_size=new_size, old_root=old_root, new_root=new_root, proof=proof)
        for new_size, old_root, new_root, proof in [
            (3, EMPTY_ROOT, ROOTS[3], []),
            (0, EMPTY_ROOT, EMPTY_ROOT, []),
            (0, EMPTY_ROOT, ROOTS[3], []),
            (3, ROOTS[1], ROOTS[3], []),
            (3, EMPTY_ROOT, ROOTS[3], [LEAVES[0]]),
        ]
    ] == [True, True, False, False, False]


def test_a_tree_that_does_not_exist_has_no_proof() -> None:
    for index, size in [(-1, 3), (3, 3), (0, 0), (0, 301), (5, 4)]:
        with pytest.raises(ValueError, match="expected an index below the size"):
            inclusion_proof(LEAVES, index, size)
    for old_size, new_size in [(-1, 3), (4, 3), (0, 301), (0, -1)]:
        with pytest.raises(ValueError, match="expected sizes in order"):
            consistency_proof(LEAVES, old_size, new_size)


hostile_integers = st.integers() | st.integers(0, 20) | st.sampled_from([2**63, MAX_SIZE, 2**64, 1 << 100_000, -1 << 100_000])
hostile_hashes = st.binary(max_size=40) | st.sampled_from(LEAVES[:5] + ROOTS[:5])
hostile_proofs = st.lists(hostile_hashes, max_size=70)


@given(hostile_hashes, hostile_integers, hostile_integers, hostile_proofs, hostile_hashes)
@example(LEAVES[0], MAX_SIZE - 1, MAX_SIZE, [LEAVES[0]] * 64, ROOTS[1])
def test_a_hostile_inclusion_proof_is_refused_without_an_error(
    leaf: bytes, index: int, size: int, proof: list[bytes], tree_root: bytes
) -> None:
    accepted = verify_inclusion(leaf, index=index, size=size, proof=proof, tree_root=tree_root)
    assert not accepted or (0 <= index < size and len(tree_root) == 32)


@given(hostile_integers, hostile_integers, hostile_hashes, hostile_hashes, hostile_proofs)
@example(MAX_SIZE - 1, MAX_SIZE, ROOTS[1], ROOTS[2], [LEAVES[0]] * 64)
@example(2**63, MAX_SIZE, ROOTS[1], ROOTS[2], [])
def test_a_hostile_consistency_proof_is_refused_without_an_error(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: list[bytes]
) -> None:
    accepted = verify_consistency(old_size=old_size, new_size=new_size, old_root=old_root, new_root=new_root, proof=proof)
    assert not accepted or (0 <= old_size <= new_size and len(new_root) == 32)


def pairs(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((one, other) for one in first for other in second)
