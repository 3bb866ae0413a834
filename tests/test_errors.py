"""One tree of exceptions, one form of message."""

import pytest

from ldpopt.errors import CertificateError, InvalidInput, LdpoptError, Phrase, SolverError, invalid


def test_errors_form_one_tree():
    """Every error is an LdpoptError, and also the built-in kind a caller would expect."""
    assert issubclass(InvalidInput, LdpoptError)
    assert issubclass(InvalidInput, ValueError)
    for kind in (SolverError, CertificateError):
        assert issubclass(kind, LdpoptError)
        assert issubclass(kind, RuntimeError)


@pytest.mark.parametrize(
    ("got", "where", "text"),
    [
        (1.5, "", "eta: expected less, got 1.5"),
        ("a", "entry 3", "eta: expected less, got 'a' at entry 3"),
        (Phrase("the name 'a' twice"), "", "eta: expected less, got the name 'a' twice"),
        ("x" * 500, "end", "eta: expected less, got '" + "x" * 116 + "... at end"),
        (None, "", "eta: expected less, got None"),
    ],
)
def test_messages_state_what_was_expected_and_where(got, where, text):
    """The message has the value's name, the expectation, the value and the place, on one line of bounded length."""
    assert str(invalid("eta", "less", got, where)) == text
