"""What people's privacy rests on has a test file of its name, or a reason to be tested elsewhere."""

from pathlib import Path

from packages import folder

TESTS = Path(__file__).parent

ROOMS = {
    "privacy": ("ldpopt", "privacy"),
    "design/kernel": ("ldpopt", "design/kernel"),
    "composition": ("ldpopt", "composition"),
    "survey/collect": ("ldpopt_survey", "collect"),
}
"""Folders of `tests`, and the package and the folder of it whose modules are tested there."""

ELSEWHERE = {
    "design/hypothesis_sets/proof.py": ("design/kernel/test_proof.py", "it needs the bound for one pair of the sets"),
    "privacy/shapes.py": ("privacy/test_kinks.py", "both adversaries are judged by the same searches"),
    "privacy/restricted.py": ("privacy/test_capacity.py", "its programs are the measures there"),
}
"""Modules without a test file of their name: where they are tested, and why there."""


def modules() -> list[str]:
    """The modules of these folders, but for packages' own, by where their tests are."""
    found = [
        f"{tests}/{path.relative_to(folder(package) / inner).as_posix()}"
        for tests, (package, inner) in ROOMS.items()
        for path in (folder(package) / inner).rglob("*.py")
    ]
    found += [f"design/{path.parent.name}/{path.name}" for path in (folder("ldpopt") / "design").glob("*/proof*.py")]
    return sorted({name for name in found if not name.endswith("__init__.py")})


def test_every_module_has_a_test_file_of_its_name_or_a_reason() -> None:
    """`tests` mirrors the package path for path; what does not is listed, with the file that tests it."""
    for name in modules():
        path = Path(name)
        if not (TESTS / path.parent / f"test_{path.name}").exists():
            assert name in ELSEWHERE, f"{name} has no test file of its name, and no reason is given"
            assert (TESTS / ELSEWHERE[name][0]).exists()


def test_no_reason_outlives_its_module() -> None:
    """What is listed exists, and has no test file of its name."""
    for name in ELSEWHERE:
        path = Path(name)
        assert name in modules()
        assert not (TESTS / path.parent / f"test_{path.name}").exists()
