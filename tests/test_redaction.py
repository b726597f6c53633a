"""Every text passes one hook before it is written, and what the model reads is rendered from what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger import Ledger, Refused
from refledger.redaction import redact_secrets
from refledger_schema.errors import InvalidArtifact, InvalidConfiguration, RefledgerError
from refledger_schema.events import DispatchRefused
from refledger_schema.wording import dispatch_sentence
from tests.ledgers import SCOPE, new_log

SECRET = "AKIA" + "Q" * 16
MARK = "[redacted aws-access-key]"


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(new_log(tmp_path)) as opened:
        yield opened


def test_no_text_of_a_run_reaches_the_disk_with_a_secret_in_it(ledger: Ledger, tmp_path: Path) -> None:
    with ledger.run(SCOPE, attributes={"trace": SECRET}) as run:
        run.message("user", f"use {SECRET}")
        run.context(system=f"you hold {SECRET}", parameters={"header": SECRET})
        with run.call("fetch", args={"token": SECRET, "dataset": SECRET}) as call:
            meta = call.put([1], kind="dataset/rows", label=f"rows of {SECRET}")
            call.resolve({"dataset": "dataset/rows"})
            call.present(meta.ref, f"table {SECRET}", label=SECRET)
            call.result(f"fetched with {SECRET}")
        answer = run.answer(f"done with {SECRET}")
        run.delete(meta.ref, by=SECRET, why=f"leaks {SECRET}")
    ledger.judge(answer.answer_id, "wrong", by=SECRET, note=f"it says {SECRET}")
    ledger.close()
    assert SECRET.encode() not in bytes_of(tmp_path)
    assert bytes_of(tmp_path).count(MARK.encode()) >= 10


def test_the_sentence_a_model_reads_is_rendered_from_the_redacted_event(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        run.put([1], kind="dataset/rows", label=f"rows of {SECRET}")
        with run.call("sum", args={"dataset": SECRET}) as call:
            outcome = call.resolve({"dataset": "dataset/rows"})
        assert isinstance(outcome, Refused)
        (event,) = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, DispatchRefused)]
    assert SECRET not in outcome.refusal and outcome.refusal.count(MARK) == 2
    assert dispatch_sentence(event) == outcome.refusal


def test_payloads_are_data_and_stay_as_they_are(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        stored = run.get(run.put({"key": SECRET}, kind="config").ref)
    assert stored is not None and stored.data == {"key": SECRET}


def test_a_hook_of_ones_own_sees_each_text_with_its_place_and_its_name_is_in_the_log(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def shout(text: str, where: str) -> str:
        seen.append((text, where))
        return text.upper()

    with Ledger.open(new_log(tmp_path), redact=shout) as ledger:
        with ledger.run(SCOPE) as run:
            assert run.put("x", kind="k", label="quiet").label == "QUIET"
            run.answer("done")
        opened = next(recorded.event for recorded in ledger.events() if recorded.event.type == "log.opened")
    assert seen == [("quiet", "artifact.minted label"), ("done", "content")]
    assert str(opened.body()["redaction"]).endswith("shout")


def test_a_hook_that_refuses_stops_the_whole_act(tmp_path: Path) -> None:
    class NotHere(RefledgerError):
        pass

    def never(text: str, where: str) -> str:
        raise NotHere(where)

    with Ledger.open(new_log(tmp_path), redact=never) as ledger, ledger.run(SCOPE) as run:
        with pytest.raises(NotHere):
            run.put("x", kind="k", label="a label")
        assert run.list().artifacts == ()


def test_a_hook_that_gives_no_text_is_told_so(tmp_path: Path) -> None:
    with (
        Ledger.open(new_log(tmp_path), redact=lambda text, where: None) as ledger,  # type: ignore[arg-type,return-value]
        ledger.run(SCOPE) as run,
        pytest.raises(InvalidConfiguration),
    ):
        run.put("x", kind="k", label="a label")


def test_without_a_hook_texts_are_written_as_they_are(tmp_path: Path) -> None:
    with Ledger.open(new_log(tmp_path), redact=None) as ledger, ledger.run(SCOPE) as run:
        assert run.put("x", kind="k", label=SECRET).label == SECRET


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("no secret, just a key point", "no secret, just a key point"),
        (f"id {SECRET}.", f"id {MARK}."),
        ("postgres://app:s3cr3t!@db/x", "postgres://app:[redacted url-password]@db/x"),
        ("Authorization: Bearer abcdefghijklmnopqrstuvwx", "Authorization: Bearer [redacted bearer-token]"),
        ('{"api_key": "abcdef123456"}', '{"api_key": "[redacted password]"}'),
        ("ghp_" + "a" * 36, "[redacted github-token]"),
        ("sk-" + "a1" * 12, "[redacted model-api-key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "[redacted private-key]"),
    ],
)
def test_common_secrets_are_replaced_by_what_they_were(text: str, clean: str) -> None:
    assert redact_secrets(text, "content") == clean


@given(st.text() | st.text(alphabet="AKIA:/@ =[]redctpasworky-_eyJ.'\"", max_size=80))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_secrets(text, "content")
    assert redact_secrets(once, "content") == once


@pytest.mark.parametrize("text", ["x" * 200_000, "://a:" * 40_000, "eyJ" * 60_000, "-----BEGIN " * 15_000, "password=" * 20_000])
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    """Would take minutes if a pattern were quadratic: the test's time limit is the suite's."""
    assert len(redact_secrets(text, "content")) > 0


def test_a_label_that_redaction_makes_longer_stays_within_its_bound(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        label = run.put("x", kind="k", label=f"{'a' * 150} password=secret1 password=secret2 pw").label
        assert label is not None and len(label) <= 200
        assert ledger.verify().ok
    with pytest.raises(InvalidArtifact), ledger.run(SCOPE) as run:
        run.put("x", kind="k", label="a" * 201)
