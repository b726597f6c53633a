"""The ledger for asyncio is the ledger over threads, and an act that has begun is finished whatever happens to its task."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from refledger import AsyncLedger, Ledger
from refledger_schema.errors import NoLog
from tests.ledgers import SCOPE, new_log


def test_a_run_is_recorded_as_the_synchronous_ledger_records_it(tmp_path: Path) -> None:
    async def program() -> tuple[str, list[str]]:
        async with AsyncLedger.open(new_log(tmp_path)) as ledger:
            async with ledger.run(SCOPE, agent="analyst") as run:
                async with run.call("load") as call:
                    meta = await call.put([1], kind="dataset/rows")
                    await call.result(meta.ref)
                async with run.call("sum", args={"dataset": meta.ref}) as call:
                    outcome = await call.resolve({"dataset": "dataset/rows"})
                    assert outcome.ok and outcome.args == {"dataset": [1]}
                    await call.result("1")
                answer = await run.answer("1", cites=[meta.ref])
            await ledger.judge(answer.answer_id, "right")
            found = await ledger.backtrack(answer.answer_id)
            return meta.ref, [row.node_id for row in found.cone]

    ref, cone = asyncio.run(program())
    with Ledger.open(tmp_path / "agent.db") as ledger:
        types = [recorded.event.type for recorded in ledger.events()]
    assert types == [
        "log.opened", "run.started", "call.started", "artifact.minted", "call.ended", "call.started", "dispatch.resolved",
        "call.ended", "answer.given", "run.ended", "answer.judged",
    ]  # fmt: skip
    assert cone[0] == ref


def test_many_tasks_share_one_run(tmp_path: Path) -> None:
    async def program() -> int | None:
        async with AsyncLedger.open(new_log(tmp_path)) as ledger, ledger.run(SCOPE) as run:
            metas = await asyncio.gather(*(run.put([number], kind="k") for number in range(30)))
            assert len({meta.ref for meta in metas}) == 30
            return (await run.list(kind="k")).total

    assert asyncio.run(program()) == 30


def test_a_cancelled_task_ends_only_once_its_act_is_over(tmp_path: Path) -> None:
    async def program() -> int | None:
        async with AsyncLedger.open(new_log(tmp_path)) as ledger, ledger.run(SCOPE) as run:
            started, go_on = threading.Event(), threading.Event()

            def pieces() -> object:
                started.set()
                go_on.wait(10)
                yield b"late"

            task = asyncio.create_task(run.put_stream(pieces(), kind="k"))  # type: ignore[arg-type]
            await asyncio.to_thread(started.wait, 10)
            task.cancel()
            await asyncio.sleep(0.05)
            assert not task.done()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await run.list(kind="k")).total

    assert asyncio.run(program()) == 1


def test_payloads_stream_out_with_async_for(tmp_path: Path) -> None:
    async def program() -> tuple[bytes, bool]:
        async with AsyncLedger.open(new_log(tmp_path)) as ledger, ledger.run(SCOPE) as run:
            meta = await run.put(b"x" * 3_000_000, kind="file/raw")
            reader = await run.get_stream(meta.ref)
            assert reader is not None
            async with reader:
                data = b"".join([piece async for piece in reader])
            return data, reader.verified

    assert asyncio.run(program()) == (b"x" * 3_000_000, True)


def test_it_can_be_opened_without_a_block_and_fails_as_the_synchronous_one_does(tmp_path: Path) -> None:
    async def program() -> None:
        ledger = await AsyncLedger.open(new_log(tmp_path))
        run = await ledger.run(SCOPE)
        await run.end()
        await ledger.close()
        with pytest.raises(NoLog):
            await AsyncLedger.open(tmp_path / "none.db", create=False)

    asyncio.run(program())
