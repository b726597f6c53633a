"""What a model reads when dispatch refuses: a pure function of the stored event and its wording version.

A renderer is never changed once released, and never removed, so that the sentence a model read can be made again, byte for
byte, for as long as the event keeps its texts. A new wording is a new function under a new number.

What comes from labels, kinds and names is made harmless first (`shown`): it can plant neither a ref nor a sentence. What the
model itself spoke is given back to it in quotes (`as_spoken`), refs included, so that it can see its slip.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from refledger_schema.events import ArtifactRefused, DispatchRefused, JudgedArgument, OfferedRef, Offers

REFUSED_PREFIX = "refused: "
"""The first words of every refusal that a model reads (seed `refusal.d.ts`): they say what the text is."""
MAX_SHOWN = 80
"""How much of a foreign text a model is shown, in characters."""
LATEST = 1
_LIKE_A_REF = re.compile(r"art_[0-9A-Za-z]{22}")
_CUT_REF = re.compile(r"art_[0-9A-Za-z]*\Z")
# Written out, since what Python calls printable changes with its version, and a sentence must not: controls, white space beside the
# space, format characters (directions, tags), variation selectors, fillers that show nothing, surrogates, private use.
_UNSHOWN = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def dispatch_sentence(event: DispatchRefused) -> str:
    """The sentence that the model read for `event`. Raises KeyError for a wording that this software does not know."""
    return RENDERERS[event.wording](event)


def argument_sentence(event: DispatchRefused, argument: JudgedArgument) -> str:
    """The part of the sentence that speaks of one refused argument, with what was offered for its kind."""
    return ARGUMENT_RENDERERS[event.wording](event, argument)


def shown(text: str) -> str:
    """A foreign text as a model may read it: harmless, and quoted."""
    return quoted(harmless(text))


def harmless(text: str) -> str:
    """A foreign text made safe to show: one line, bounded, and no ref in it that could be taken for an offer."""
    return bounded(_LIKE_A_REF.sub("art_…", _UNSHOWN.sub(" ", text)))


def as_spoken(text: str) -> str:
    """The model's own words, quoted: white space at the ends stays, so that a slip shows; empty where nothing of it shows."""
    visible = _UNSHOWN.sub(" ", text)
    return quoted(bounded(visible)) if visible.strip(" ") else ""


def one_line(text: str) -> str:
    """A text without control characters, line breaks and runs of white space."""
    return " ".join(word for word in _UNSHOWN.sub(" ", text).split(" ") if word)


def bounded(text: str) -> str:
    """At most `MAX_SHOWN` characters. The cut never makes a ref of what was a longer word."""
    return text if len(text) <= MAX_SHOWN else _CUT_REF.sub("art_", text[: MAX_SHOWN - 1]) + "…"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dispatch_1(event: DispatchRefused) -> str:
    refused = [argument for argument in event.arguments if argument.outcome == "refused"]
    parts = [f"{REFUSED_PREFIX}the tool {shown(event.tool)} did not run."]
    parts += [_argument_1(event, argument) for argument in refused]
    return " ".join(parts)


def _argument_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    offers = next((offer for offer in event.offers if offer.kind == argument.wanted), None)
    hint = f" Without what stands around it, it is the live ref {argument.meant}: pass just that." if argument.meant is not None else ""
    return f"{_complaint_1(event, argument)}{hint} {_offer_1(argument.wanted, offers, event.labels or {})}"


def _complaint_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    name = shown(argument.argument)
    if argument.reason == "invalid-input":
        if argument.spoken_as == "absent":
            return f"Argument {name} is required and was not given; it takes a ref of kind {shown(argument.wanted)}."
        return f"Argument {name} takes a ref of kind {shown(argument.wanted)} as text, not {_SPOKEN_AS_1[argument.spoken_as]}."
    spoken = _spoken_1(event, argument)
    if argument.reason == "kind-mismatch":
        return f"Argument {name} takes a ref of kind {shown(argument.wanted)}, and {spoken} is of kind {shown(argument.actual or '')}."
    if argument.reason == "digest-mismatch":
        return f"Argument {name}: the data behind {spoken} is damaged and was not passed on."
    return f"Argument {name}: {spoken} is missing or expired."


_SPOKEN_AS_1: Mapping[str, str] = {
    "empty-text": "an empty text",
    "null": "null",
    "boolean": "a boolean",
    "number": "a number",
    "array": "an array",
    "object": "an object",
    "bytes": "bytes",
    "other": "a value that JSON does not have",
}


def _spoken_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    text = argument.ref or (event.spoken or {}).get(argument.argument) or ""
    return as_spoken(text) or f"what was passed ({_count(argument.spoken_length or 0, 'character')})"


def _offer_1(kind: str, offers: Offers | None, labels: Mapping[str, str]) -> str:
    if offers is None or not offers.refs:
        return f"No ref of kind {shown(kind)} is live in this conversation: produce one first."
    lines = ", ".join(_line_1(offered.ref, offered.bytes, labels.get(offered.ref)) for offered in offers.refs)
    count = f"{len(offers.refs):,} of {offers.total:,}"
    return f"Live refs of kind {shown(kind)}, newest first, {count}: {lines}."


def _line_1(ref: str, size: int, label: str | None) -> str:
    named = "" if label is None else f"{shown(label)}, "
    return f"{ref} ({named}{_count(size, 'byte')})"


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}" if number == 1 else f"{number:,} {unit}s"


RENDERERS: Mapping[int, Callable[[DispatchRefused], str]] = {1: _dispatch_1}
ARGUMENT_RENDERERS: Mapping[int, Callable[[DispatchRefused, JudgedArgument], str]] = {1: _argument_1}


def present_sentence(event: ArtifactRefused) -> str:
    """The sentence that the model read when nothing was presented. Raises KeyError for a wording that this software does not know."""
    return PRESENT_RENDERERS[event.wording or 0](event)


def _present_1(event: ArtifactRefused) -> str:
    if event.reason == "invalid-input":
        complaint = "It takes a ref and what to show it as, both as text."
    else:
        complaint = f"{_quoted_ref_1(event)} is missing or expired."
    return f"{REFUSED_PREFIX}nothing was presented. {complaint} {_offer_any_1(event.offered or (), event.total or 0, event.labels or {})}"


def _quoted_ref_1(event: ArtifactRefused) -> str:
    spoken = as_spoken(event.ref or event.spoken or "")
    return spoken or f"what was passed ({_count(event.spoken_length or 0, 'character')})"


def _offer_any_1(offered: Sequence[OfferedRef], total: int, labels: Mapping[str, str]) -> str:
    if not offered:
        return "No ref is live in this conversation: produce one first."
    lines = ", ".join(_line_1(line.ref, line.bytes, labels.get(line.ref)) for line in offered)
    return f"Live refs, newest first, {len(offered):,} of {total:,}: {lines}."


PRESENT_RENDERERS: Mapping[int, Callable[[ArtifactRefused], str]] = {1: _present_1}
