"""TP9: source code that an upgrade of torch breaks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from torchpin.documents.base import Document, Span
from torchpin.evidence import MEASURED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule

if TYPE_CHECKING:
    from torchpin.documents.python_source import Use

SINCE = "2.14"
"""The release from which on all rules of this family hold."""


class SourceRule(Rule):
    """Base of the rules on Python code: they look at calls, where torch is new enough."""

    kind: ClassVar[str]
    message: ClassVar[str]
    ground: ClassVar[str]
    source: ClassVar[str]
    remedy: ClassVar[str]
    """What to write instead."""

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: code is no way in."""
        yield from ()

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield the calls of a Python file that the torch in use does not take."""
        if document.kind not in PYTHON:
            return
        uses = self.uses(document)
        if not uses:
            return
        newer = in_use(document, context)
        if newer is not None or self.asked:
            yield from self.told(document, uses, newer)

    def uses(self, document: Document) -> tuple[Use, ...]:
        """Return the calls of a Python file that the rule is about."""
        from torchpin.documents.python_source import uses_of

        return tuple(use for use in uses_of(document.text) if use.kind == self.kind)

    def told(
        self, document: Document, uses: Iterable[Use], newer: tuple[str, bool] | None
    ) -> Iterator[Finding]:
        """Yield calls as those of a torch, and of whether every target gets it.

        ``newer`` None: it is not known which torch is in use.
        """
        which = f"torch {newer[0]}" if newer else f"torch {SINCE} and newer"
        if not document.comments and "torchpin" in document.text.lower():
            document = document._replace(comments=(Span(0, 0),))  # a call may be silenced there
        for use in uses:
            severity = self.severity
            if severity == ERROR and not (newer and newer[1]):
                severity = WARNING
            if self.kind == "selective" and use.hooks:
                severity = WARNING
            yield self.finding(
                document,
                use.span,
                self.message.format(torch=which),
                severity=severity,
                because=(Because(self.ground, MEASURED, self.source),),
            )


PYTHON = frozenset(("script", "setup.py", "noxfile.py"))


def in_use(document: Document, context: Context) -> tuple[str, bool] | None:
    """Return the newest torch that the file's own block, else its project, installs, if it is new
    enough for the rules, and whether every target gets one that is. None: not known to be.
    """
    from packaging.version import Version

    own = [way for way in context.ways if way.install.root.path == document.path]
    ways = own or [way for way in context.ways if above(way.project, document.path)]
    found = [
        one.selection.build.version
        for way in ways
        for judged_set in way.sets
        for one in judged_set.judged
        if one.selection.package == "torch" and one.selection.build is not None
    ]
    if not found:
        return None
    newest = max(found, key=Version)
    if Version(newest) < Version(SINCE):
        return None
    return newest, all(Version(one) >= Version(SINCE) for one in found)


def above(folder: str, path: str) -> bool:
    """Tell whether a file lies in a project's folder, or below it."""
    base, whole = os.path.realpath(folder or "."), os.path.realpath(path)
    return whole.startswith(os.path.join(base, ""))


class SelectiveCheckpointHooks(SourceRule):
    """Selective activation checkpointing that does not say how it goes with saved-tensors hooks.

    What it does: reports calls of ``torch.utils.checkpoint.checkpoint(…, use_reentrant=False,
    context_fn=…)`` whose ``context_fn`` comes from ``create_selective_checkpoint_contexts``, and
    that do not pass ``respect_saved_tensors_hooks``. Information; a warning where the same file
    also uses ``saved_tensors_hooks`` or ``save_on_cpu``.

    Why it is bad: the tensors that selective checkpointing saves pass by such hooks today. With
    a hook in scope torch 2.14 and newer emit a ``FutureWarning``: "a future release will route
    them through the hooks like any other saved tensor". Where warnings are errors, training stops;
    later the memory and the results of hooks such as ``save_on_cpu`` change.

    Example: ``checkpoint(block, x, use_reentrant=False, context_fn=partial(
    create_selective_checkpoint_contexts, policy))``

    Fix: pass ``respect_saved_tensors_hooks=True`` (the hooks see these tensors) or ``False`` (as
    before). The argument is new in 2.14: older releases refuse it.

    Note: a widely read guide says that torch 2.15 enforces a *class attribute*
    ``respect_saved_tensors_hooks`` on subclasses of ``torch.autograd.Function``, and quotes an
    error. Neither is in the wheels of 2.14.0 and 2.15.0: ``torch/autograd/function.py`` does not
    hold the word. It is an argument of ``torch.utils.checkpoint.checkpoint`` and nothing else, and
    leaving it out is a warning.

    Evidence: ``torch/utils/checkpoint.py`` of the wheels 2.13.0 (without it), 2.14.0 and 2.15.0.
    """

    code = "TP901"
    name = "selective-checkpoint-hooks"
    severity = INFO
    kind = "selective"
    message = (
        "selective checkpointing without respect_saved_tensors_hooks: {torch} warns where "
        "saved-tensors hooks are active, and the default will change"
    )
    ground = (
        "the argument is new in 2.14.0, its default None 'emits a FutureWarning when a user hook "
        "is in scope'"
    )
    source = "torch/utils/checkpoint.py of the wheels of 2.14.0 and 2.15.0"
    remedy = "pass respect_saved_tensors_hooks=True or False"


class RemovedCholesky(SourceRule):
    """``torch.cholesky``, which torch 2.14 removed.

    What it does: reports calls of ``torch.cholesky``, by whatever name the file imports it.

    Why it is bad: since 2.14.0 it raises ``RuntimeError: This function was deprecated since
    version 1.9 and is now removed``.

    Example: ``L = torch.cholesky(A)``

    Fix: ``torch.linalg.cholesky(A)``; for ``upper=True`` ``torch.linalg.cholesky(A).mH``.

    Evidence: ``torch/_linalg_utils.py`` of the wheels of 2.14.0 and 2.15.0.
    """

    code = "TP902"
    name = "removed-cholesky"
    severity = ERROR
    kind = "cholesky"
    message = "{torch} has no torch.cholesky any more: use torch.linalg.cholesky"
    ground = "since 2.14.0 torch.cholesky raises RuntimeError ('is now removed')"
    source = "torch/_linalg_utils.py of the wheels of 2.14.0 and 2.15.0"
    remedy = "torch.linalg.cholesky"


class RemovedQr(SourceRule):
    """``torch.qr``, which torch 2.14 removed.

    What it does: reports calls of ``torch.qr``, by whatever name the file imports it.

    Why it is bad: since 2.14.0 it raises ``RuntimeError: This function was deprecated since
    version 1.9 and is now removed``.

    Example: ``Q, R = torch.qr(A, some=False)``

    Fix: ``torch.linalg.qr(A)``; for ``some=False`` ``torch.linalg.qr(A, mode="complete")``.

    Evidence: ``torch/_linalg_utils.py`` of the wheels of 2.14.0 and 2.15.0.
    """

    code = "TP903"
    name = "removed-qr"
    severity = ERROR
    kind = "qr"
    message = "{torch} has no torch.qr any more: use torch.linalg.qr"
    ground = "since 2.14.0 torch.qr raises RuntimeError ('is now removed')"
    source = "torch/_linalg_utils.py of the wheels of 2.14.0 and 2.15.0"
    remedy = "torch.linalg.qr"


class RemovedUseCuda(SourceRule):
    """The argument ``use_cuda`` of the profilers, which torch 2.14 removed.

    What it does: reports ``use_cuda=…`` in calls of ``torch.profiler.profile`` and
    ``torch.autograd.profiler.profile``.

    Why it is bad: since 2.14.0 neither takes it: ``TypeError: … unexpected keyword argument
    'use_cuda'``.

    Example: ``with torch.profiler.profile(use_cuda=True):``

    Fix: ``activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`` for ``torch.profiler``;
    ``use_device="cuda"`` for ``torch.autograd.profiler``.

    Evidence: the signatures in ``torch/profiler/profiler.py`` and ``torch/autograd/profiler.py`` of
    the wheels of 2.13.0 (deprecated), 2.14.0 and 2.15.0 (gone).
    """

    code = "TP904"
    name = "removed-use-cuda"
    severity = ERROR
    kind = "use_cuda"
    message = "{torch} has no argument use_cuda in its profilers: use activities, or use_device"
    ground = "2.13.0 warns of use_cuda, 2.14.0 does not take it"
    source = "torch/profiler/profiler.py and torch/autograd/profiler.py of the wheels"
    remedy = 'activities=[…CUDA] (torch.profiler), use_device="cuda" (torch.autograd.profiler)'


RULES = (SelectiveCheckpointHooks, RemovedCholesky, RemovedQr, RemovedUseCuda)
