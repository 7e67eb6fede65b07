"""Clients that change and read the list during a fault, and compare each page with the answers to their changes."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import httpx
from processes import repeating, until
from visitor import Page, Site, page_of

CLIENTS = 5
"""The number of clients that send their changes to the same service."""

UNCERTAIN = "Belum dapat dipastikan"


@contextmanager
def changing(*urls: str) -> Iterator[Callable[[int], None]]:
    """Change and read the list of these services during the block. Fail if a page is stale, or if an acknowledged change is lost.

    Yield a function that waits until each service has acknowledged so many further changes.
    """
    acknowledged = dict.fromkeys(urls, 0)
    clients = [client(str(number), url, acknowledged) for number, url in enumerate(urls * CLIENTS)]

    def wait_for(changes: int) -> None:
        before = acknowledged.copy()
        until(lambda: all(acknowledged[url] - before[url] >= changes for url in urls), 60)

    with repeating(*[partial(next, steps) for steps in clients]):
        yield wait_for


def client(nim: str, url: str, acknowledged: dict[str, int]) -> Iterator[None]:
    """Change one record, which no other client changes, at `url`, and read it at any address. Yield after each change."""
    shown: list[list[str]] = []
    while True:
        text = str(time.monotonic_ns())
        row = [nim, text, text]
        with suppress(httpx.TransportError), Site(url) as site:
            add = partial(site.add, *row)
            changes = [(add, 302, [row])]
            if shown:
                changes = [
                    (add, 409, shown),
                    (partial(site.edit, *row), 302, [row]),
                    (partial(site.delete, nim), 302, []),
                ]
            change, expected, after = random.choice(changes)
            possible = [shown, after]
            answer = change()
            if UNCERTAIN not in answer.text:
                possible = {expected: [after], 503: [shown]}[answer.status_code]
                acknowledged[url] += answer.status_code == expected
        page = until(partial(page_of_any, [*acknowledged]))
        shown = [[*record] for record in page.records if record[0] == nim]
        assert shown in possible, f"{shown} is none of {possible}"
        yield


def page_of_any(urls: list[str]) -> Page | None:
    """Return the page of the list, or None if the service that is asked is not available."""
    with suppress(httpx.TransportError), Site(random.choice(urls)) as site:
        answer = site.get("/")
        if answer.status_code != 503:
            return page_of(answer)
    return None
