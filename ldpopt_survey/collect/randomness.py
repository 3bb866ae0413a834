"""Three sources of the random words that decide reports: fresh for each run, memoized over runs, or simulated."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.values.distribution import Rng, generator
from ldpopt.values.labels import as_text
from ldpopt_survey.collect.manifest import SIMULATED, fingerprint_rows
from ldpopt_survey.collect.words import CHUNK_WORDS, Keystream, Respondents, SecretKey, Words, read_key, tag
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion


@dataclass(frozen=True)
class Fresh:
    """New random words for every run, under a key from the operating system that is deleted when the run ends.

    Every run over the same answers makes a further report of each, and the privacy losses add up. While a run on files
    lasts, or waits to be resumed, its key lies in the work folder with mode 0600. A reader of this key and the reports
    of the run learns the answers. The key is deleted when the run ends, but the disk is not scrubbed.

    >>> Fresh()
    Fresh()
    """

    mode = "fresh"

    def key(self) -> SecretKey:
        """Generate a new key."""
        return SecretKey.fresh()


@dataclass(frozen=True)
class Memoized:
    """Random words fixed by key, round, respondent, question and answer, so that a second run repeats the same reports.

    key_file : the file of the survey key, made by `create_key`.

    Anybody with the key can recompute the words. A changed answer gets a new report, so the change is visible, and the
    two reports together cost up to twice epsilon.

    >>> Memoized("survey.key").mode
    'memoised'
    """

    key_file: str | os.PathLike[str]
    mode = "memoised"

    def key(self) -> SecretKey:
        """Read the survey key."""
        return read_key(self.key_file)


@dataclass(frozen=True, init=False)
class Simulated:
    """Random words from a numpy generator, for simulation only. The reports protect nobody and are labelled so.

    rng : a `numpy.random.Generator`, a seed of one, or None for a seed of the operating system.

    >>> Simulated(1).mode
    'simulated'
    """

    rng: np.random.Generator
    mode = SIMULATED

    def __init__(self, rng: Rng = None) -> None:
        object.__setattr__(self, "rng", generator(rng))

    def key(self) -> SecretKey:
        """Draw a key from the generator."""
        return SecretKey(self.rng.bytes(32))


Randomness = Fresh | Memoized | Simulated


def default_randomness(plan: Plan, randomness: Randomness | None) -> Randomness:
    """Return `randomness`, or `Fresh()` if it is None.

    Raises `InvalidInput` for None and a plan with a respondent column, which has no default.
    """
    if randomness is None and plan.respondent is not None:
        raise invalid("randomness", "Memoized(key_file), since the plan names a respondent column", None)
    source = Fresh() if randomness is None else randomness
    if not isinstance(source, (Fresh, Memoized, Simulated)):
        raise invalid("randomness", "Fresh(), Memoized(key_file) or Simulated(rng)", type(source).__name__)
    if isinstance(source, Memoized) and plan.respondent is None:
        raise invalid("randomness", "a plan with a respondent column for Memoized", None)
    return source


class WordSource:
    """Makes the words of one plan under one key."""

    def __init__(self, plan: Plan, mode: str, key: SecretKey) -> None:
        self._is_memoized = mode == Memoized.mode
        self._key, self._questions = key, len(plan.questions)
        # The channel is part of the tag, since one word used with two channels could reveal more than two independent
        # reports. The answer is part of it for the same reason.
        self._tags = [word_tags(plan, question) for question in plan.questions if self._is_memoized]
        self._booklets = booklet_steps(plan)
        self._booklet = booklet_tag(plan)
        self._identity = tag("identity", plan.name)
        self._row = tag("row", plan.checksum)

    def respondents(self, ids: Any) -> Respondents:
        """Return the states of a pyarrow string array of ids."""
        return Respondents(self._key, ids)

    def identities(self, ids: Any) -> Any:
        """Compute 128-bit pseudonyms of n ids, shape (n, 2); duplicates have equal pseudonyms."""
        return self.respondents(ids).macs(self._identity)

    def row_set(self, respondents: Respondents | None, partition: int) -> str:
        """Compute the fingerprint of the rows of `respondents`, or of all rows of a partition."""
        if respondents is not None:
            return fingerprint_rows(respondents.macs(self._row))
        content = self._row + partition.to_bytes(8, "little")
        return hashlib.blake2b(content, key=self._key.derive(b"ldpopt rows"), digest_size=16).hexdigest()

    def streams(self, partition: int) -> list[Keystream] | None:
        """Create one stream of words for each question of a partition, in the order of its rows.

        Returns None if the words are memoized.
        """
        streams = self._questions + bool(len(self._booklets))
        return None if self._is_memoized else [Keystream(self._key, partition, q) for q in range(streams)]

    def booklets(self, streams: list[Keystream] | None, respondents: Respondents | None, rows: int) -> Any:
        """Return (rows,) the booklet of each respondent, as a position among the plan's booklets."""
        words = np.empty(rows, np.uint64)
        if streams is not None:
            for start in range(0, rows, CHUNK_WORDS):
                streams[-1].fill(words[start : start + CHUNK_WORDS])
        elif respondents is not None:
            words = respondents.macs(self._booklet)[:, 0]
        return np.searchsorted(self._booklets, words, side="right")

    def words(
        self, question: int, streams: list[Keystream] | None, respondents: Respondents | None, answers: Any
    ) -> Words:
        """Return the words of a question for the next rows.

        answers : the positions of the answers among the question's categories.
        """
        if streams is not None:
            return streams[question]
        if respondents is None:
            raise invalid("words", "respondents", None)
        return respondents.words(self._tags[question], answers)


def booklet_steps(plan: Plan) -> npt.NDArray[np.uint64]:
    """Return the smallest word of each booklet but the first: 2^64 times summed probabilities."""
    sums = list(accumulate(question.probability for question in plan.booklets))
    return np.array([math.ceil(total * 2**64) for total in sums[:-1]], dtype=np.uint64)


def booklet_tag(plan: Plan) -> bytes:
    """Return the tag of the memoized words that draw booklets."""
    booklet_texts = [f"{question.name} {question.probability}" for question in plan.booklets]
    return tag("booklet", plan.name, str(plan.round), *booklet_texts)


def word_tags(plan: Plan, question: PlannedQuestion) -> list[bytes]:
    """Return the tags of the answers of a question."""
    parts = (plan.name, str(plan.round), question.name, question.channel.to_json())
    return [tag("word of answer", *parts, as_text(category)) for category in question.categories]
