"""No wrong promise in changed survey folders; the full form is ``python experiments/trust/folders.py``."""

import pytest
import survey_folders

pytestmark = pytest.mark.full


def test_no_promise_of_a_changed_folder_is_wrong() -> None:
    """Routes, copies, orders, ids, repeated people and stale forms are refused; what spoils nothing is let through."""
    made, wrong = survey_folders.run(24, 3)
    assert wrong == []
    assert len(made) >= 10
