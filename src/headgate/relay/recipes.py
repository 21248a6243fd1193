"""How the views at a site are computed: from the document, by a rewriting, or as a copy.

A view that reads one view of the same pattern is a copy: its result is forwarded without being
decoded. Of 10,000 popular views ([Delta §5.5]) every second one is a copy. The same holds for a
view if another view of the same pattern at the site was computed before, whatever the plan says
that it reads. All others run their rewriting (views/run_rewriting.py).

A result is kept as it arrived, and converted to tuples or to bytes on first use.

Invariant: what cannot be computed (too many embeddings, unreadable bytes) is also a result: a
failure with its reason, and so is everything computed from it. No document stops a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakValueDictionary

from headgate.model.errors import HeadgateError, InvalidValue, RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.relay.deployment import Deployment
from headgate.relay.tuple_frames import (
    Shape,
    decode_tuples,
    encode_failure,
    encode_tuples,
    failure_of,
)
from headgate.views.document import Document
from headgate.views.rewriting_plan import rewriting_plan
from headgate.views.run_levels import PatternSet
from headgate.views.run_rewriting import CompiledRewriting
from headgate.views.view_tuples import ViewTuples


class TupleResult:
    """Tuples or bytes of a view, made from each other on demand."""

    __slots__ = ("__weakref__", "_content", "_shape", "_tuples", "size_bytes")

    def __init__(
        self, shape: Shape, *, content: bytes | None = None, tuples: ViewTuples | None = None
    ) -> None:
        self._shape, self._content, self._tuples = shape, content, tuples
        # For tuples this is what their arrays take; texts belong to the document.
        self.size_bytes = len(content) if content is not None else _array_bytes(tuples)

    @property
    def content(self) -> bytes:
        if self._content is None:
            assert self._tuples is not None
            self._content = encode_tuples(self._tuples, self._shape)
        return self._content

    @property
    def tuples(self) -> ViewTuples:
        if self._tuples is None:
            assert self._content is not None
            self._tuples = decode_tuples(self._content, self._shape)
        return self._tuples

    @property
    def failure(self) -> str | None:
        return None if self._content is None else failure_of(self._content)


def _array_bytes(tuples: ViewTuples | None) -> int:
    return 0 if tuples is None else int(tuples.ids.nbytes) + 64 * len(tuples.texts)


class Recipes:
    """The views of one site. Not for several threads at a time."""

    def __init__(self, deployment: Deployment, site: str) -> None:
        self._views = deployment.views
        part = deployment.parts[site].views
        self._shapes = {number: Shape(deployment.views[number].pattern) for number in part}
        own = [view for view in part.values() if not view.supplier]
        self._from_document = [view.number for view in own if not view.reads]
        self._patterns = PatternSet([self._views[each].pattern for each in self._from_document])
        self._copied: dict[int, bool] = {
            view.number: self._is_copy(view.number, view.reads) for view in own if view.reads
        }
        self._rewritings: dict[int, CompiledRewriting] = {}
        kinds: dict[PatternNode, int] = {}
        self._kind = {each: kinds.setdefault(self._views[each].pattern, each) for each in part}
        # By document and kind; for as long as somebody else needs them.
        self._twins: WeakValueDictionary[tuple[int, int], TupleResult] = WeakValueDictionary()
        self.failures = self.copied = 0

    def _is_copy(self, view: int, reads: tuple[int, ...]) -> bool:
        return len(reads) == 1 and self._views[view].pattern == self._views[reads[0]].pattern

    def received(self, site: str, view: int, document: int, content: bytes) -> TupleResult:
        if view not in self._shapes:
            raise RelayError(f"{site} sends view {view}, which is not known here")
        reason = failure_of(content)  # whether it has a head at all
        result = TupleResult(self._shapes[view], content=content)
        if reason is None:
            self._twins[document, self._kind[view]] = result
        return result

    def compute(self, view: int, document: int, inputs: Mapping[int, TupleResult]) -> TupleResult:
        if self._copied[view]:
            self.copied += 1
            return next(iter(inputs.values()))
        if (twin := self._twins.get((document, self._kind[view]))) is not None:
            self.copied += 1
            return twin
        for member, each in inputs.items():
            if reason := each.failure:
                return self._failed(view, f"{self._views[member]}: {reason}")
        try:
            tuples = {member: each.tuples for member, each in inputs.items()}
            found = TupleResult(self._shapes[view], tuples=self._rewriting(view).run(tuples))
        except HeadgateError as error:
            return self._failed(view, str(error))
        self._twins[document, self._kind[view]] = found
        return found

    def _rewriting(self, view: int) -> CompiledRewriting:
        if view not in self._rewritings:
            reads = {each: self._views[each].pattern for each in self._views[view].reads}
            plan = rewriting_plan(self._views[view].pattern, reads)
            self._rewritings[view] = CompiledRewriting(plan)
        return self._rewritings[view]

    def evaluate(self, text: str) -> dict[int, TupleResult]:
        """The views of level 1, at the source."""
        document = Document.read(text)
        if document is None:
            return {each: self._failed(each, "no well-formed XML") for each in self._from_document}
        try:
            found = self._patterns.evaluate(document)
        except InvalidValue:  # one of them is too large: the others are not to suffer for it
            return {each: self._evaluate_alone(each, document) for each in self._from_document}
        return {
            number: TupleResult(self._shapes[number], tuples=tuples)
            for number, tuples in zip(self._from_document, found, strict=True)
        }

    def _evaluate_alone(self, view: int, document: Document) -> TupleResult:
        try:
            (found,) = PatternSet([self._views[view].pattern]).evaluate(document)
        except InvalidValue as error:
            return self._failed(view, str(error))
        return TupleResult(self._shapes[view], tuples=found)

    def _failed(self, view: int, reason: str) -> TupleResult:
        self.failures += 1
        return TupleResult(self._shapes[view], content=encode_failure(reason))
