"""What a check of the contract can find, by how bad it is."""

from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import NoAnswerError


def broken(target: str, text: str) -> Mismatch:
    """An answer that has not the form that the contract gives it."""
    return Mismatch(Verdict.BROKEN, target, text)


def no_answer(error: NoAnswerError) -> Mismatch:
    """A request that got no answer; why not, may be put otherwise the next time."""
    return broken(error.target, error.reason.partition(" (")[0])


def wrong(target: str, text: str) -> Mismatch:
    """An answer whose content contradicts the contract, or another answer."""
    return Mismatch(Verdict.WRONG, target, text)


def note(target: str, text: str) -> Mismatch:
    """An answer that this program would give otherwise, of which the contract says nothing."""
    return Mismatch(Verdict.NOTE, target, text)
