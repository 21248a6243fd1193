"""Small posts, checked and written in groups.

    requests ──► waiting ──► one thread: all that wait are checked and synced together ──► answers

A post alone would cost a thread, a look into the catalog, a reader of JSON and a sync of the disk.
While one group is written the next one gathers, so the more posts come, the less each of them
costs. A large post takes long to check, and would hold up the others: it takes a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from fastapi.concurrency import run_in_threadpool

from headgate.acquire.post import Posted
from headgate.api.posting import NewPost, PostBox
from headgate.model.errors import HeadgateError

SMALL_BYTES_MAX = 16_384
GROUP_MAX = 500


class PostQueue:
    """For one event loop."""

    def __init__(self, box: PostBox) -> None:
        self._box = box
        self._waiting: list[tuple[NewPost, asyncio.Future[Posted]]] = []
        self._thread = ThreadPoolExecutor(1, "posts")
        self._writer: asyncio.Task[None] | None = None

    async def post(self, post: NewPost) -> Posted:
        if sum(map(len, post.lines)) > SMALL_BYTES_MAX:
            (posted,) = await run_in_threadpool(self._box.post_many, [post])
            if isinstance(posted, HeadgateError):
                raise posted
            return posted
        future: asyncio.Future[Posted] = asyncio.get_running_loop().create_future()
        self._waiting.append((post, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await future

    async def post_each(self, posts: Sequence[NewPost]) -> list[Posted | HeadgateError]:
        """Several posts, each accepted or refused by itself. A large group takes a thread of its
        own."""
        if len(posts) > 1:
            return await run_in_threadpool(self._box.post_many, posts)
        try:
            return [await self.post(each) for each in posts]
        except HeadgateError as error:
            return [error]

    async def _write(self) -> None:
        """As long as posts wait."""
        loop = asyncio.get_running_loop()
        while group := self._waiting[:GROUP_MAX]:
            del self._waiting[: len(group)]
            posts = [post for post, _ in group]
            answers: Sequence[Posted | Exception]
            try:
                answers = await loop.run_in_executor(self._thread, self._box.post_many, posts)
            except Exception as error:
                answers = [error] * len(group)
            for (_, future), answer in zip(group, answers, strict=True):
                if future.done():
                    continue  # its request was cancelled
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
