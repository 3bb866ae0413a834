"""Mutated files end in documented ways; the full form is ``python experiments/trust/fuzz.py``."""

import fuzzing
import fuzzing_designs
import fuzzing_folders
import pytest

from ldpopt.io import read_channel

pytestmark = pytest.mark.full


@pytest.mark.parametrize("loader", fuzzing.LOADERS + fuzzing.LATER, ids=lambda loader: loader.name)
def test_the_unmutated_files_are_read(loader, tmp_path):
    """Every loader accepts the files that are mutated, so that mutations start from something valid."""
    for data in loader.seeds:
        loader.load(data, tmp_path)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("block", range(2))
def test_mutated_files_are_read_or_refused(block, tmp_path):
    """Nothing but `InvalidInput` and `CertificateError` comes out of a loader, and nothing is left on the disk."""
    outcomes = [fuzzing.case(seed, tmp_path) for seed in range(block * 700, (block + 1) * 700)]
    outcomes += [fuzzing.case(seed, tmp_path, fuzzing.LATER) for seed in range(block * 100, (block + 1) * 100)]
    assert [found for found in outcomes if found[1] not in ("read", "refused")] == []
    assert {"read", "refused"} == {outcome for _, outcome in outcomes}


@pytest.mark.parametrize("block", range(2))
def test_mutated_designs_are_refused_or_true(block, tmp_path):
    """A mutated design file is refused, does not verify, or claims nothing but what independent arithmetic confirms."""
    loaders = fuzzing_designs.loaders()
    outcomes = [fuzzing.case(seed, tmp_path, loaders) for seed in range(block * 200, (block + 1) * 200)]
    assert [found for found in outcomes if found[1] not in ("read", "refused")] == []
    assert {"read", "refused"} == {outcome for _, outcome in outcomes}


@pytest.mark.parametrize("loader", fuzzing.LOADERS[:9], ids=lambda loader: loader.name)
def test_every_token_alone_is_refused(loader, tmp_path):
    """No spelling of NaN, no nesting, archive or path is by itself a file that a loader takes."""
    for token in fuzzing.TOKENS:
        if loader.name.startswith("channel file CSV") and token in {b"0", b"-0.0", b"1.5", b"62", b"63", b"-1"}:
            token += b",1.5"  # a single 1 would be a channel
        with pytest.raises(fuzzing.DOCUMENTED):
            loader.load(token, tmp_path)


@pytest.mark.parametrize("seed", [65645, 78206, 123717, 161658, 457736, 477260])
def test_files_that_once_passed_are_refused(seed, tmp_path):
    """Column names that are no UTF-8, rows that a file only claims to have, separators around a number are refused."""
    assert fuzzing.case(seed, tmp_path)[1] == "refused"


def test_a_number_between_separators_is_a_number(tmp_path):
    """The blanks that the grammar of cells allows around a number do not reach `float`."""
    path = tmp_path / "q.csv"
    path.write_text("0.75,\x1d0.25\n0.25,0.75\n")
    assert read_channel(path).matrix[0].tolist() == [0.75, 0.25]


def test_unmutated_folders_are_resumed(tmp_path):
    """Interrupted frontiers, runs and experiments are resumed as they are."""
    for loader in fuzzing_folders.loaders():
        loader.load(loader.seeds[0], tmp_path)
        assert list(tmp_path.iterdir()) == [], loader.name


@pytest.mark.parametrize("block", range(2))
def test_mutated_folders_are_refused_or_recomputed(block, tmp_path):
    """A changed file in such a folder is refused or recomputed, to the same result."""
    loaders = fuzzing_folders.loaders()
    outcomes = [fuzzing.case(seed, tmp_path, loaders) for seed in range(block * 40, (block + 1) * 40)]
    assert [found for found in outcomes if found[1] not in ("read", "refused")] == []
    assert {"read", "refused"} == {outcome for _, outcome in outcomes}
