"""Mutated files end in documented ways; the full form is ``python experiments/trust/fuzz.py``."""

import fuzzing
import pytest


@pytest.mark.parametrize("loader", fuzzing.LOADERS, ids=lambda loader: loader.name)
def test_the_unmutated_files_are_read(loader, tmp_path):
    """Every loader accepts the files that are mutated, so that mutations start from something valid."""
    for data in loader.seeds:
        loader.load(data, tmp_path)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("block", range(4))
def test_mutated_files_are_read_or_refused(block, tmp_path):
    """Nothing but `InvalidInput` and `CertificateError` comes out of a loader, and nothing is left on the disk."""
    outcomes = [fuzzing.case(seed, tmp_path) for seed in range(block * 700, (block + 1) * 700)]
    assert [found for found in outcomes if found[1] not in ("read", "refused")] == []
    assert {"read", "refused"} == {outcome for _, outcome in outcomes}


@pytest.mark.parametrize("loader", fuzzing.LOADERS[:9], ids=lambda loader: loader.name)
@pytest.mark.parametrize("token", fuzzing.TOKENS, ids=lambda token: repr(token[:12]))
def test_every_token_alone_is_refused(loader, token, tmp_path):
    """No spelling of NaN, no nesting, archive or path is by itself a file that a loader takes."""
    if loader.name.startswith("channel file CSV") and token in {b"0", b"-0.0", b"1.5", b"62", b"63", b"-1"}:
        token += b",1.5"  # a single 1 would be a channel
    with pytest.raises(fuzzing.DOCUMENTED):
        loader.load(token, tmp_path)
