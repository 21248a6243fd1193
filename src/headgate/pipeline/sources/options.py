"""The options of the pipeline's sources: texts, as Spark has them; an error names the option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.model.addresses import LOOPBACK, Allowed
from headgate.model.errors import PipelineError


@dataclass(frozen=True, slots=True)
class Options:
    """Spark does not tell upper from lower case in the names of options, and so does this."""

    given: Mapping[str, str]

    def path(self, name: str) -> Path:
        """An absolute path: workers may run elsewhere."""
        value = self.text(name, "")
        if not value:
            raise PipelineError(f"the source needs the option '{name}'")
        return Path(value).absolute()

    def text(self, name: str, default: str) -> str:
        return str(self.given.get(name, default))

    def number(self, name: str, default: float, *, least: float = 0.0) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            raise PipelineError(f"option '{name}' is a number from {least:g} on, not '{text}'")
        return value

    def whole(self, name: str, default: int, *, least: int = 1) -> int:
        return int(self.number(name, default, least=least))

    def allowed(self) -> Allowed:
        """Networks that may be connected to besides the public Internet."""
        names = [each.strip() for each in self.text("allow", "").split(",") if each.strip()]
        networks = [str(each) for each in LOOPBACK.networks] if "loopback" in names else []
        try:
            return Allowed.of(*networks, *(each for each in names if each != "loopback"))
        except ValueError as error:
            raise PipelineError(f"option 'allow': {error}") from None
