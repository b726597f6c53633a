"""`present`: hand an artifact to the screen by its ticket, with a snapshot that outlives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refledger.contract import ArtifactMeta
from refledger.recorder import Place, Recorder, refusal_event
from refledger.verbs import found, meta_of
from refledger.wants import spoken_as
from refledger_schema.digests import digest_of_text
from refledger_schema.errors import InvalidArtifact
from refledger_schema.events import MAX_NAME, MAX_OFFERED, MAX_SPOKEN, ArtifactPresented, ArtifactRefused, OfferedRef
from refledger_schema.reasons import Cause
from refledger_schema.wording import LATEST, harmless, present_sentence
from refledger_store.append import Decision, Locked


@dataclass(frozen=True, slots=True)
class Presented:
    """What came of `present`. Where `ok`, `as_dict` is for the screen and the model; else `refusal` is for the model."""

    ok: bool
    ref: str | None = None
    shown_as: str | None = None
    snapshot: dict[str, str] | None = None
    """Kind, media type, bytes and label as they were when it was presented."""
    refusal: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result in its wire form."""
        if not self.ok:
            return {"presented": False, "refusal": self.refusal}
        snapshot = self.snapshot or {}
        wire = {"kind": snapshot["kind"], "mediaType": snapshot["media_type"], "bytes": int(snapshot["bytes"])}
        labelled = {"label": snapshot["label"]} if "label" in snapshot else {}
        return {"presented": True, "ref": self.ref, "as": self.shown_as, "snapshot": {**wire, **labelled}}


def present(recorder: Recorder, place: Place, ref: object, shown_as: object, label: str | None) -> Presented:
    """Present an artifact, and record it: closed either way, since the model reads what comes of it."""
    if label is not None and (not isinstance(label, str) or len(label) > MAX_NAME):
        raise InvalidArtifact("label", f"expected `label` to be text of at most {MAX_NAME} characters, or None. Shorten it.")

    def decide(state: Locked) -> Decision[Presented]:
        if spoken_as(ref) != "text" or spoken_as(shown_as) != "text" or len(str(shown_as)) > MAX_NAME:
            return _refuse(state, recorder, place, "refused_input", None)
        meta, cause = found(state, place.scope, ref, state.now_us)
        if meta is None:
            return _refuse(state, recorder, place, cause or "never_minted", ref)
        event = recorder.clean(_presented(meta, place, str(shown_as), label))
        return Decision(Presented(True, meta.ref, event.shown_as, event.snapshot), [place.draft(event)])

    return recorder.append(decide, place)


def _presented(meta: ArtifactMeta, place: Place, shown_as: str, label: str | None) -> ArtifactPresented:
    named = label if spoken_as(label) == "text" else meta.label
    snapshot = {"kind": meta.kind, "media_type": meta.media_type, "bytes": str(meta.bytes), **({"label": named} if named else {})}
    return ArtifactPresented(ref=meta.ref, door=place.door, shown_as=shown_as, snapshot=snapshot)


def _refuse(state: Locked, recorder: Recorder, place: Place, cause: Cause, ref: object) -> Decision[Presented]:
    """The refusal with the newest live refs of any kind, as one event."""
    scope = place.scope.key
    newest, total = state.offerable(scope, now_us=state.now_us, limit=MAX_OFFERED)
    metas = [meta_of(state, row) for row in newest]
    spoken = ref if isinstance(ref, str) and len(ref) <= MAX_SPOKEN and "\x00" not in ref and ref.isprintable() else None
    told = {
        "wording": LATEST,
        "offered": tuple(OfferedRef(ref=meta.ref, bytes=meta.bytes) for meta in metas),
        "total": total,
        "spoken": spoken,
        "labels": {meta.ref: harmless(meta.label) for meta in metas if meta.label} or None,
    }
    event: ArtifactRefused = recorder.clean(refusal_event("present", cause, ref).model_copy(update=told))
    event = event.model_copy(update={"sentence": digest_of_text(present_sentence(event))})
    return Decision(Presented(False, refusal=present_sentence(event)), [place.draft(event)])
