"""The ledger for asyncio: the same ledger over threads, safe to cancel.

An act that has begun is finished, whatever happens to the task that awaits it: the task's cancellation is delivered once the
act is over, so nothing is recorded behind the back of a block that was left.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from refledger.call import Call
from refledger.contract import ArtifactMeta
from refledger.ledger import Ledger
from refledger.run import Run
from refledger.streams import ArtifactReader
from refledger_schema.scopes import Scope

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
WORKERS = 8
"""Threads of one ledger, unless told otherwise."""


class _Threaded(Generic[S_co]):
    """An object of the synchronous ledger, and the threads that its acts run in."""

    def __init__(self, sync: S_co, executor: Executor) -> None:
        self._sync = sync
        self._executor = executor

    @property
    def sync(self) -> S_co:
        """The object of the synchronous ledger."""
        return self._sync

    async def _act(self, act: Callable[[], T]) -> T:
        return await finished(self._executor, act)


def threaded(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[_Threaded[S], P], Coroutine[Any, Any, T]]:
    """The method of the synchronous ledger as a coroutine, with its own parameters and its own documentation."""

    @functools.wraps(method)
    async def act(self: _Threaded[S], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._act(functools.partial(method, self.sync, *args, **kwargs))

    return act  # type: ignore[return-value]


async def finished(executor: Executor, act: Callable[[], T]) -> T:
    """Run `act` in a thread, in the caller's context. A cancellation waits until it is over."""
    context = contextvars.copy_context()
    future = asyncio.get_running_loop().run_in_executor(executor, lambda: context.run(act))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # Whatever the act came to belongs to nobody now; what matters is that it is over.
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        future.exception()
        raise


class AsyncReader(_Threaded[ArtifactReader]):
    """A payload on its way out: iterate over it with `async for`, once; see `ArtifactReader`."""

    @property
    def meta(self) -> ArtifactMeta:
        return self.sync.meta

    @property
    def verified(self) -> bool:
        """Whether the whole payload was read and is what its digest says."""
        return self.sync.verified

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # A StopIteration cannot leave a future.
        piece = await self._act(lambda: next(self.sync, None))
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._act(self.sync.close)


class AsyncCall(_Threaded[Call]):
    """One dispatch of a tool call; see `Call`."""

    put = threaded(Call.put)
    put_stream = threaded(Call.put_stream)
    head = threaded(Call.head)
    get = threaded(Call.get)
    delete = threaded(Call.delete)
    list = threaded(Call.list)
    present = threaded(Call.present)
    resolve = threaded(Call.resolve)
    result = threaded(Call.result)
    fail = threaded(Call.fail)

    @property
    def call_id(self) -> str:
        return self.sync.call_id

    @property
    def dispatch(self) -> int:
        return self.sync.dispatch

    async def get_stream(self, ref: str) -> AsyncReader | None:
        """The payload's bytes a piece at a time; None for every absence."""
        return _reader(await self._act(lambda: self.sync.get_stream(ref)), self._executor)

    async def __aenter__(self) -> Self:
        await self._act(self.sync.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._act(lambda: self.sync.__exit__(kind, error, trace))


class AsyncRun(_Threaded[Run]):
    """One agent's run; see `Run`."""

    put = threaded(Run.put)
    put_stream = threaded(Run.put_stream)
    head = threaded(Run.head)
    get = threaded(Run.get)
    delete = threaded(Run.delete)
    list = threaded(Run.list)
    present = threaded(Run.present)
    message = threaded(Run.message)
    context = threaded(Run.context)
    answer = threaded(Run.answer)
    end = threaded(Run.end)
    flush = threaded(Run.flush)

    @property
    def run_id(self) -> str:
        return self.sync.run_id

    @property
    def scope(self) -> Scope:
        return self.sync.scope

    @property
    def joined(self) -> bool:
        """Whether the run was open already."""
        return self.sync.joined

    def call(
        self,
        tool: str,
        *,
        call_id: str | None = None,
        args: Mapping[str, Any] | None = None,
        turn: int | None = None,
        message: int | None = None,
    ) -> AsyncCall:
        """A tool call, to be used with `async with`; see `Run.call`."""
        return AsyncCall(self.sync.call(tool, call_id=call_id, args=args, turn=turn, message=message), self._executor)

    async def get_stream(self, ref: str) -> AsyncReader | None:
        """The payload's bytes a piece at a time; None for every absence."""
        return _reader(await self._act(lambda: self.sync.get_stream(ref)), self._executor)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._act(lambda: self.sync.__exit__(kind, error, trace))


class Opening(Generic[T]):
    """Something that is about to open: await it, or enter it with `async with`."""

    def __init__(self, opened: Coroutine[Any, Any, T]) -> None:
        self._opened: Awaitable[T] = opened
        self._entered: Any = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._opened.__await__()

    async def __aenter__(self) -> T:
        self._entered = await self._opened
        return self._entered  # type: ignore[no-any-return]

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._entered.__aexit__(kind, error, trace)


class AsyncLedger(_Threaded[Ledger]):
    """An open log for asyncio; see `Ledger`.

    async with AsyncLedger.open("agent.db") as ledger:
        async with ledger.run(Scope(conversation="c-17")) as run:
            ...
    """

    backtrack = threaded(Ledger.backtrack)
    sql = threaded(Ledger.sql)
    judge = threaded(Ledger.judge)
    record = threaded(Ledger.record)
    runs = threaded(Ledger.runs)
    answers = threaded(Ledger.answers)
    artifacts = threaded(Ledger.artifacts)
    content = threaded(Ledger.content)
    verify = threaded(Ledger.verify)
    rebuild = threaded(Ledger.rebuild)
    flush = threaded(Ledger.flush)

    @classmethod
    def open(cls, path: Any, *, workers: int = WORKERS, **options: Any) -> Opening[AsyncLedger]:
        """Open the log in a SQLite file; the options are those of `Ledger.open`. Await it, or enter it with `async with`."""

        async def opened() -> AsyncLedger:
            executor = ThreadPoolExecutor(workers, thread_name_prefix="refledger")
            try:
                return cls(await finished(executor, lambda: Ledger.open(path, **options)), executor)
            except BaseException:
                executor.shutdown(wait=False)
                raise

        return Opening(opened())

    @property
    def log_id(self) -> str:
        return self.sync.log_id

    def run(self, scope: Scope, **options: Any) -> Opening[AsyncRun]:
        """Open or join a run; the options are those of `Ledger.run`. Await it, or enter it with `async with`."""

        async def opened() -> AsyncRun:
            return AsyncRun(await self._act(lambda: self.sync.run(scope, **options)), self._executor)

        return Opening(opened())

    async def close(self) -> None:
        """Commit what waits, and close."""
        await self._act(self.sync.close)
        self._executor.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def _reader(reader: ArtifactReader | None, executor: Executor) -> AsyncReader | None:
    return None if reader is None else AsyncReader(reader, executor)
