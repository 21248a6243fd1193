"""The fenced blocks and links of a Markdown file, with the lines they stand on."""

from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt


@dataclass(frozen=True, slots=True)
class Block:
    info: tuple[str, ...]  # the words after the opening fence
    lines: tuple[str, ...]
    first_line: int  # of the content, counted from 0 in the file
    indent: str  # of the fence, where the block stands in a list

    @property
    def end_line(self) -> int:
        return self.first_line + len(self.lines)


def read_blocks(text: str) -> list[Block]:
    lines = text.splitlines()
    blocks = []
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.map is not None:
            opening = lines[token.map[0]]
            blocks.append(
                Block(
                    info=tuple(token.info.split()),
                    lines=tuple(token.content.splitlines()),
                    first_line=token.map[0] + 1,
                    indent=opening[: len(opening) - len(opening.lstrip())],
                )
            )
    return blocks


def read_links(text: str) -> list[tuple[int, str]]:
    """Every link and image, as (line counted from 1, target)."""
    links = []
    for token in MarkdownIt().parse(text):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None:
                links.append(((token.map or [0])[0] + 1, str(target)))
    return links


def documents(root: Path) -> list[Path]:
    return sorted([*root.glob("*.md"), *(root / "docs").glob("**/*.md")])
