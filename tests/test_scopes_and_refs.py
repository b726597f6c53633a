"""What names things: scopes, which are three texts or nothing, and refs, which are minted and never derived."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger import Ledger, Scope
from refledger_schema.errors import InvalidScope, TooLarge
from refledger_schema.refs import is_ref, mint_answer_id, mint_call_id, mint_ref, mint_run_id, refs_in
from refledger_schema.scopes import MAX_FIELD, scope_of

REF = "art_" + "0aZ" * 7 + "9"

# --- refs -------------------------------------------------------------------------------------------------------------------------------


def test_a_ref_is_art_and_22_letters_or_digits_of_ascii() -> None:
    assert [is_ref("art_" + char * 22) for char in "09AZaz"] == [True] * 6


@pytest.mark.parametrize(
    "text",
    [
        REF + "\n",
        "\n" + REF,
        REF + " ",
        " " + REF,
        REF + "\x00",
        REF + "\ufeff",
        REF[:-1],
        REF + "0",
        REF[:-1] + "_",
        REF[:-1] + "-",
        REF[:-1] + "é",
        REF[:-1] + "１",
        REF[:-1] + "٣",
        "ART_" + REF[4:],
        "Art_" + REF[4:],
        "run_" + REF[4:],
        "art-" + REF[4:],
        REF[4:],
        "art_",
        "",
        f"'{REF}'",
    ],
)
def test_whatever_else_is_no_ref(text: str) -> None:
    assert not is_ref(text)


@given(st.text(max_size=30) | st.from_regex(r"art_[0-9A-Za-z]{20,24}", fullmatch=False))
def test_the_grammar_is_the_whole_texts(text: str) -> None:
    base62 = set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    assert is_ref(text) == (len(text) == 26 and text.startswith("art_") and set(text[4:]) <= base62)


def test_minted_refs_are_well_formed_and_unique_and_use_every_character_at_every_place() -> None:
    minted = [mint_ref() for _ in range(20_000)]
    assert all(map(is_ref, minted)) and len(set(minted)) == 20_000
    assert [len({ref[place] for ref in minted}) for place in range(4, 26)] == [62] * 22


def test_minted_ids_say_what_they_name() -> None:
    ids = [mint_run_id(), mint_call_id(), mint_answer_id()]
    assert [re.sub(r"[0-9A-Za-z]{22}\Z", "…", minted) for minted in ids] == ["run_…", "call_…", "ans_…"]


def test_the_same_bytes_twice_are_two_refs_of_one_digest(tmp_path: Any) -> None:
    with Ledger.open(tmp_path / "log.db") as ledger:
        first, second = (ledger.store.put(Scope("c"), [1, 2], kind="rows") for _ in range(2))
    assert (first.ref != second.ref, first.digest == second.digest, is_ref(first.ref), is_ref(second.ref)) == (True,) * 4


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Q3 is 42, says {REF}.", (REF,)),
        (f"({REF}), '{REF}' and {REF[:-1]}X", (REF, REF[:-1] + "X")),
        (f"{REF}x {REF}_y x{REF} _{REF}", (REF,)),
        (f"{REF[:-1]} ART_{REF[4:]}", ()),
        ("", ()),
    ],
)
def test_refs_are_found_in_a_text_as_whole_words_in_the_order_of_their_first_mention(text: str, found: tuple[str, ...]) -> None:
    assert refs_in(text) == found


# --- scopes -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [918273, 0, True, False, ["a"], {"a": 1}, b"a", 1.5, object()])
@pytest.mark.parametrize("field", ["conversation", "tenant", "principal"])
def test_a_field_that_is_not_text_is_refused_by_name_and_not_quoted(field: str, value: object) -> None:
    with pytest.raises(InvalidScope) as caught:
        Scope(**{field: value})  # type: ignore[arg-type]
    found = type(value).__name__
    assert (caught.value.field, str(caught.value)) == (
        field,
        f"expected the scope's {field} to be text or nothing; found {found}. Pass a str.",
    )


@pytest.mark.parametrize("value", ["secret\x00", "secret\ud800", "\udfffsecret"])
def test_what_no_database_can_hold_is_refused_and_not_quoted(value: str) -> None:
    with pytest.raises(InvalidScope) as caught:
        Scope(conversation="c", tenant=value)
    assert str(caught.value) == "expected the scope's tenant to be storable text; found NUL or a lone surrogate. Encode it first."


def test_missing_empty_and_none_are_one_absence() -> None:
    none: Any = None
    assert {Scope("c"), Scope("c", tenant="", principal=""), Scope("c", none, none)} == {Scope("c")}
    assert [Scope().key, Scope(none).key, Scope("c").key] == ["_/_/_", "_/_/_", "_/_/c"]


def test_the_longest_field_is_taken_and_a_longer_one_is_refused_by_name() -> None:
    longest = Scope("c" * MAX_FIELD)
    assert scope_of(longest.key) == longest
    with pytest.raises(TooLarge) as caught:
        Scope("c" * (MAX_FIELD + 1))
    assert (caught.value.what, caught.value.limit, caught.value.found) == ("the scope's conversation, in characters", 1_024, 1_025)


@pytest.mark.parametrize("key", ["", "_", "_/_", "_/_/_/_", "a/b/c/d"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidScope) as caught:
        scope_of(key)
    assert caught.value.field == "key"
