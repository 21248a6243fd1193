"""Steps in a browser as a tutorial prints them, done as they are printed.

A numbered list of a tutorial is done from its first to its last step. A step begins with one of

    Open `/river`.                          an address of the console
    Click **New feed**.                     a button, link or entry, by its name
    Write `text` into **Statement**.        a field, by its label
    Choose **Rome** in **City**.            an entry of a list
    Press `j`.                              a key
    See **all of this text**.               wait until it is there

and may go on with more sentences for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from markdown_it import MarkdownIt
from playwright.sync_api import Page, expect

Do = Callable[..., None]


def _open(page: Page, path: str) -> None:
    page.goto(path)


def _click(page: Page, name: str) -> None:
    found = page.get_by_role("button", name=name)
    for role in ("link", "tab", "option"):
        found = found.or_(page.get_by_role(role, name=name))  # type: ignore[arg-type]
    found.filter(visible=True).first.click()


def _write(page: Page, text: str, label: str) -> None:
    field = page.get_by_label(label).filter(visible=True).first
    if field.get_attribute("contenteditable") is None:
        field.fill(text)
        return
    field.click()  # the editor
    field.press("ControlOrMeta+A")
    page.keyboard.insert_text(text)


def _choose(page: Page, entry: str, label: str) -> None:
    page.get_by_label(label).select_option(entry)


def _press(page: Page, key: str) -> None:
    page.keyboard.press(key)


def _see(page: Page, text: str) -> None:
    expect(page.get_by_text(text).filter(visible=True).first).to_be_visible()


VERBS: dict[str, Do] = {
    r"Open `([^`]+)`": _open,
    r"Click \*\*([^*]+)\*\*": _click,
    r"Write `([^`]+)` into \*\*([^*]+)\*\*": _write,
    r"Choose \*\*([^*]+)\*\* in \*\*([^*]+)\*\*": _choose,
    r"Press `([^`]+)`": _press,
    r"See \*\*([^*]+)\*\*": _see,
}


@dataclass(frozen=True, slots=True)
class Step:
    text: str
    line: int
    do: Do
    arguments: tuple[str, ...]


def read_steps(text: str) -> list[Step]:
    """The steps of all numbered lists.

    >>> [step.arguments for step in read_steps("1. Click **New feed**. It opens.\\n2. Press `j`.")]
    [('New feed',), ('j',)]
    """
    steps, in_numbered = [], 0
    for token in MarkdownIt().parse(text):
        in_numbered += {"ordered_list_open": 1, "ordered_list_close": -1}.get(token.type, 0)
        if token.type == "inline" and in_numbered:
            steps.append(_step(token.content.replace("\n", " "), (token.map or [0])[0] + 1))
    return steps


def _step(text: str, line: int) -> Step:
    for pattern, do in VERBS.items():
        if found := re.match(pattern, text):
            return Step(text, line, do, found.groups())
    raise AssertionError(f"line {line}: this is no step: {text}")
