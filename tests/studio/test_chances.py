import random
from fractions import Fraction

from ldpopt.studio.chances import after, as_typed, at_least, at_most, before


def number(words):
    """The chance that words say."""
    if words == "0":
        return Fraction(0)
    count, parts = words.replace(",", "").split(" in ")
    return Fraction(count) / Fraction(parts)


def samples():
    rng = random.Random(7)
    yield from (Fraction(1), Fraction(0), Fraction(1, 2), Fraction(1, 10), Fraction(9999999, 10000000))
    yield from (Fraction(1, 10**30), 1 - Fraction(1, 10**30), Fraction(1, 100), Fraction(999, 1000))
    for size in (10, 100, 10**4, 10**9):
        for _ in range(100):
            yield Fraction(rng.randint(0, size), size)
            yield Fraction(1, rng.randint(1, size))


def test_words_err_on_the_safe_side():
    """What is called at most is not below the chance, what is called at least not above, and both are near it."""
    for chance in samples():
        most, least = number(at_most(chance)), number(at_least(chance))
        assert least <= chance <= most
        assert most <= chance * Fraction(12, 10)
        assert least >= chance * Fraction(8, 10)


def test_typed_chances_are_said_as_typed():
    """One in a hundred is one in a hundred, and no rounding of floats shows."""
    assert as_typed(Fraction("0.01")) == "1 in 100"
    assert as_typed(Fraction("0.3")) == "30 in 100"
    assert as_typed(Fraction("0.07")) == "7 in 100"


def test_bayes_rule_by_hand():
    """1 in 100, a report three times likelier: 3 in 102. A report that only one answer gives: certain."""
    assert after(Fraction(1, 100), Fraction(3)) == Fraction(3, 102)
    assert after(Fraction(1, 100), Fraction(3), 2) == Fraction(9, 108)
    assert before(Fraction(1, 100), Fraction(3)) == Fraction(1, 298)
    assert after(Fraction(1, 100), None) == 1
    assert before(Fraction(1, 100), None) == 0
    assert after(Fraction(1, 100), Fraction(1)) == before(Fraction(1, 100), Fraction(1)) == Fraction(1, 100)
