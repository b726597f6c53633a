"""How a result helper refuses: one prefix, the spelling meant and never a guess past it, and the first unknown key by name."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from refledger import REFUSED_PREFIX, refusal, refuse_unknown_keys, spelling_meant
from refledger_schema.errors import DeclarationRefused

SEED = ["checked", "notChecked", "cannotCover"]
OURS = ["checked", "not_checked", "cannot_cover"]


def refused(value: object, known: list[str], at: str | None = None) -> DeclarationRefused:
    with pytest.raises(DeclarationRefused) as caught:
        refuse_unknown_keys(value, known, at)
    return caught.value


# --- the prefix -------------------------------------------------------------------------------------------------------------------------


def test_every_refusal_says_first_what_the_text_is() -> None:
    assert (REFUSED_PREFIX, str(refusal("no such thing."))) == ("refused: ", "refused: no such thing.")


def test_the_prefix_is_never_doubled() -> None:
    assert str(refusal(str(refusal("no such thing.")))) == "refused: no such thing."


# --- the spelling meant -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["not_checked", "not-checked", "Not Checked", "NOTCHECKED", "not.checked", " notChecked ", "n_o-t.c hecked"]
)
def test_the_same_letters_in_another_case_or_with_other_separators_are_a_slip(key: str) -> None:
    assert (spelling_meant(key, SEED), spelling_meant(key, OURS)) == ("notChecked", "not_checked")


@pytest.mark.parametrize("key", ["MeasuredAt", "measured__at", "measuredAT", "measured.at"])
def test_the_boundaries_of_words_do_not_matter(key: str) -> None:
    assert spelling_meant(key, ["source", "measuredAt"]) == "measuredAt"


@pytest.mark.parametrize("key", ["check", "checks", "notCheked", "unchecked", "notChecked2", "checkednot", "not/checked", "not\tchecked"])
def test_another_word_a_typo_or_a_digit_is_never_guessed(key: str) -> None:
    assert spelling_meant(key, SEED) is None


@pytest.mark.parametrize("key", ["", "_", " . ", "-"])
def test_a_key_without_letters_means_nothing_not_even_a_known_key_without_letters(key: str) -> None:
    assert (spelling_meant(key, SEED), spelling_meant(key, ["__"])) == (None, None)


def test_an_exact_key_is_itself() -> None:
    assert [spelling_meant(key, SEED) for key in SEED] == SEED


def test_an_exact_key_is_itself_even_beside_another_of_the_same_letters() -> None:
    known = ["measuredAt", "measured_at"]
    assert [spelling_meant(key, known) for key in known] == known


def test_two_known_keys_of_the_same_letters_are_no_match() -> None:
    assert spelling_meant("MeasuredAt", ["measuredAt", "measured_at"]) is None


def test_one_known_key_that_is_listed_twice_is_one_match() -> None:
    assert spelling_meant("MeasuredAt", ["measuredAt", "measuredAt"]) == "measuredAt"


def test_where_nothing_is_known_nothing_is_meant() -> None:
    assert spelling_meant("checked", []) is None


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("İd", "id"),  # Turkish dotted capital I
        ("maß", "MASS"),
        ("ſource", "source"),  # long s
        ("\u212aind", "kind"),  # Kelvin sign
        ("ｃhecked", "checked"),  # full-width c
        ("сhecked", "checked"),  # Cyrillic es
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_nothing_beyond_ascii_is_folded_and_the_look_alike_is_printed_escaped(key: str, known: str) -> None:
    assert spelling_meant(key, [known]) is None
    assert f"'{key.encode('ascii', 'backslashreplace').decode()}'" in str(refused({key: 1}, [known]))


class Word(Enum):
    CHECKED = "checked"


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        (1, "1 (int)"),
        (True, "True (bool)"),
        (None, "None (NoneType)"),
        (b"checked", "b\\'checked\\' (bytes)"),
        (("checked",), "(\\'checked\\',) (tuple)"),
        (Word.CHECKED, "<Word.CHECKED: \\'checked\\'> (Word)"),
    ],
)
def test_a_key_that_is_no_text_is_refused_with_its_type(key: object, printed: str) -> None:
    assert spelling_meant(key, ["checked"]) is None
    assert str(refused({key: 1}, ["checked"])) == f"refused: '{printed}' is not a field this vocabulary has. The fields are: checked."


separators = st.sampled_from(["", "_", "-", ".", " "])


@given(st.data())
def test_every_respelling_of_a_key_is_found_again(data: st.DataObject) -> None:
    known = data.draw(st.sampled_from(SEED))
    spelled = "".join(data.draw(separators) + (char.upper() if data.draw(st.booleans()) else char.lower()) for char in known)
    assert spelling_meant(spelled, SEED) == known


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_what_is_meant_is_known_and_has_the_same_letters(key: str, known: list[str]) -> None:
    meant = spelling_meant(key, known)
    bare = "".join(char for char in key if char not in "-_. ")
    assert meant is None or (meant in known and (meant == key or len([char for char in meant if char not in "-_. "]) == len(bare)))


# --- unknown keys -------------------------------------------------------------------------------------------------------------------------


def test_the_example_of_the_seed_is_refused_in_the_words_of_the_seed() -> None:
    error = refused({"checked": ["a"], "not_checked": ["b"]}, SEED, "coverage")
    assert str(error) == (
        "refused: 'coverage.not_checked' is not a field this vocabulary has — did you mean `notChecked`? "
        "The fields of `coverage` are: checked, notChecked, cannotCover."
    )
    assert (error.at, error.key, error.meant, error.known) == ("coverage", "not_checked", "notChecked", tuple(SEED))


def test_a_python_declaration_is_told_the_python_spelling() -> None:
    assert str(refused({"checked": ["a"], "notChecked": ["b"]}, OURS, "coverage")) == (
        "refused: 'coverage.notChecked' is not a field this vocabulary has — did you mean `not_checked`? "
        "The fields of `coverage` are: checked, not_checked, cannot_cover."
    )


def test_known_keys_pass_and_the_value_is_left_as_it_is() -> None:
    value: dict[str, Any] = {"notChecked": None, "checked": []}
    refuse_unknown_keys(value, SEED)
    refuse_unknown_keys({}, SEED)
    refuse_unknown_keys({}, [])
    refuse_unknown_keys(MappingProxyType(value), tuple(SEED))
    assert value == {"notChecked": None, "checked": []}


def test_the_first_unknown_key_in_the_values_own_order_is_the_one_refused() -> None:
    value = OrderedDict(b=1, checked=2, a=3)
    assert refused(value, SEED).key == "b"
    value.move_to_end("b")
    assert refused(value, SEED).key == "a"


def test_a_key_that_holds_nothing_is_still_a_claim() -> None:
    assert refused({"not_checked": None}, SEED).meant == "notChecked"


@pytest.mark.parametrize("key", ["constructor", "toString", "__class__", "__proto__", "keys", "__len__"])
def test_the_name_of_a_member_is_a_key_like_any_other(key: str) -> None:
    assert str(refused({key: 1}, ["checked"])) == f"refused: '{key}' is not a field this vocabulary has. The fields are: checked."


def test_a_respelling_beside_the_key_itself_says_that_the_key_is_there_already() -> None:
    assert str(refused({"checked": 1, "Checked": 2}, ["checked"])) == (
        "refused: 'Checked' is not a field this vocabulary has — did you mean `checked`, which is there already? The fields are: checked."
    )


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        (None, "refused: 'x' is not a field this vocabulary has. There are no fields."),
        ("", "refused: 'x' is not a field this vocabulary has. There are no fields."),
        ("coverage", "refused: 'coverage.x' is not a field this vocabulary has. `coverage` has no fields."),
    ],
)
def test_where_there_are_no_fields_it_says_so(at: str | None, sentence: str) -> None:
    error = refused({"x": 1}, [], at)
    assert (str(error), error.at, error.known) == (sentence, at or None, ())


def test_without_a_name_the_key_stands_alone() -> None:
    sentence = "refused: 'x' is not a field this vocabulary has. The fields are: a, b."
    assert [str(refused({"x": 1}, ["a", "b"], at)) for at in (None, "")] == [sentence, sentence]


def test_an_item_of_a_list_is_named_by_its_place() -> None:
    assert str(refused({"what": "a", "Why": "b"}, ["what", "why"], "coverage.checked[0]")) == (
        "refused: 'coverage.checked[0].Why' is not a field this vocabulary has — did you mean `why`? "
        "The fields of `coverage.checked[0]` are: what, why."
    )


def test_known_fields_are_told_in_their_order_and_once() -> None:
    error = refused({"x": 1}, ["b", "a", "b", "c", "a"])
    assert (error.known, str(error).partition("The fields are: ")[2]) == (("b", "a", "c"), "b, a, c.")


@pytest.mark.parametrize(
    ("value", "found"),
    [(None, "NoneType"), (["a"], "list"), ("checked", "str"), (5, "int"), ({"checked"}, "set"), (dict, "type"), (object(), "object")],
)
def test_what_has_no_named_fields_is_refused_by_its_shape(value: object, found: str) -> None:
    assert [(str(error), error.at) for error in (refused(value, SEED), refused(value, SEED, "coverage"))] == [
        (f"refused: the declaration must be an object with named fields, not {found}.", None),
        (f"refused: `coverage` must be an object with named fields, not {found}.", "coverage"),
    ]


@dataclasses.dataclass
class Declared:
    checked: list[str]
    Not_Checked: list[str] | None = None


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")
    checked: list[str] = []
    unused: str | None = None


def test_a_dataclass_carries_its_fields() -> None:
    assert refused(Declared(["a"]), SEED).meant == "notChecked"
    refuse_unknown_keys(Declared(["a"]), ["checked", "Not_Checked"])
    assert str(refused(Declared, SEED)) == "refused: the declaration must be an object with named fields, not type."


def test_a_pydantic_model_carries_the_fields_that_were_set_and_its_extras() -> None:
    refuse_unknown_keys(Model(checked=["a"]), ["checked"])
    assert refused(Model(checked=["a"], unused="b"), ["checked"]).key == "unused"
    assert refused(Model.model_validate({"not_checked": ["a"]}), SEED).meant == "notChecked"


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("it's", "it\\'s"),
        ("a\\", "a\\\\"),
        ("a\\'. Ignore this", "a\\\\\\'. Ignore this"),
        ("a\nb\tc\x1b[2J", "a\\nb\\tc\\x1b[2J"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
        ("k" * 80, "k" * 80),
        ("k" * 81, "k" * 79 + "…"),
        ("k" * 1_000_000, "k" * 79 + "…"),
    ],
)
def test_a_hostile_key_is_escaped_and_cut(key: str, printed: str) -> None:
    error = refused({key: 1}, ["checked"])
    assert (str(error), error.key) == (f"refused: '{printed}' is not a field this vocabulary has. The fields are: checked.", printed)


def closing_quotes(text: str) -> int:
    """How many quotes in `text` no backslash takes back."""
    count, escaped = 0, False
    for char in text:
        count += char == "'" and not escaped
        escaped = char == "\\" and not escaped
    return count


@given(st.text() | st.text("'\\", max_size=100) | st.binary() | st.integers() | st.tuples(st.text()))
def test_no_key_ends_its_own_quotes_or_its_line(key: Any) -> None:
    sentence = str(refused({key: 1}, [], "coverage"))
    assert (closing_quotes(sentence), sentence.isprintable(), len(sentence) < 250) == (2, True, True)


@pytest.mark.parametrize("act", [lambda: refusal("no."), lambda: refused({"x": 1}, SEED), lambda: refused(None, SEED)])
def test_no_refusal_names_its_helper(act: Callable[[], DeclarationRefused]) -> None:
    error = act()
    assert (error.helper, str(error).startswith(REFUSED_PREFIX)) == (None, True)
    assert not any(helper in str(error) for helper in ("absent", "coverage()", "described_result", "refuse_unknown_keys"))
