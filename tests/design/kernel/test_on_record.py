"""The kernel's answers to certificates on record, honest ones and such with one part changed, are as they were.

Whether the answers are right is judged elsewhere, by brute force and in high precision (`tests/helpers/forging`); here
none of the thousands changes unnoticed. `tests/helpers/certificates_on_record.py` writes the record anew.
"""

import math

import certificates_on_record as on_record
import pytest

pytestmark = pytest.mark.full

ENTRIES = on_record.record()


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])
def test_the_kernel_answers_as_on_record(entry):
    """Of every eighth change the bound is the same in balls of 256 bits, near it in floats; refusals too.

    Every change is asked for where the record is written anew.
    """
    certificate = on_record.certificate_of(entry)
    kept, asked = entry["answers"], on_record.questions(certificate)
    assert list(asked) == list(kept)
    for said, (made, ways) in list(asked.items())[::8]:
        floats, balls = kept[said][0], kept[said][-1]
        assert on_record.alike(on_record.answer(made, False), floats, 1e-9), said
        if len(ways) > 1:
            assert on_record.alike(on_record.answer(made, True), balls, 1e-12), said


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])
def test_no_change_of_the_numbers_proves_less_than_is_attained(entry):
    """Whatever the numbers are, a bound is on the right side of what the channel attains (weak duality)."""
    certificate = on_record.certificate_of(entry)
    if not certificate.verify():
        return
    sign = -1.0 if certificate.utility.error else 1.0
    value = certificate.value_in(on_record.arithmetic(True))
    for said, kept in entry["answers"].items():
        if said.split()[0] not in ("utility", "constraints"):
            assert all(isinstance(one, str) or sign * one >= sign * value for one in kept), said
    assert math.isfinite(value)
