"""What a package index, conda and Binder are given is true and complete."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
source = pytest.mark.skipif(not (ROOT / "hatch_build.py").is_file(), reason="only beside the source")
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def _hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_links_of_readme_lead_somewhere():
    """Every relative link and picture of README is a file of the repository."""
    readme = (ROOT / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\((?!https:|#)([^)\s]+)\)", readme)
    assert targets
    if (ROOT / "experiments" / "README.md").is_file():
        assert [one for one in targets if not (ROOT / one.split("#")[0]).exists()] == []


@source
def test_readme_renders_on_an_index():
    """The description has no relative link or picture, loses no other word, and every https link stays."""
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = _hook().on_an_index(readme)
    assert not re.findall(r"\]\((?!https://|#)", shown)
    assert shown.startswith("# ldpopt\n")
    assert "survey tutorial" in shown
    assert shown.count("```") == readme.count("```")
    assert _hook().on_an_index("see [a](https://a.org) and [b](docs/b.md)") == "see [a](https://a.org) and b"


def test_the_pythons_that_are_promised():
    """The classifiers name the versions from the lowest on, and CI's files run the same."""
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert named == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={named[0]}"
    workflow = ROOT / ".github" / "workflows" / "check.yml"
    if workflow.is_file():
        assert all(f'"{one}"' in workflow.read_text("utf-8") for one in named)


@source
def test_the_conda_recipe_needs_what_the_package_needs():
    """Version, licence, command and every requirement with its bounds, under conda's names."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert f"license: {PROJECT['license']}" in recipe
    assert all(f"- {name} = {target}" in recipe for name, target in PROJECT["scripts"].items())
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    stated = {tuple(line.strip("- ").split(" ")) for line in run.splitlines()}
    needed = {tuple(re.match(r"([\w-]+)(.*)", one).groups()) for one in PROJECT["dependencies"]}
    renamed = {(CONDA_NAMES.get(name, name), bounds) for name, bounds in needed}
    assert stated == renamed | {("python", PROJECT["requires-python"])}


@source
@pytest.mark.skipif(not (ROOT / ".binder").is_dir(), reason="only in a clone")
def test_binder_installs_this_package():
    """Binder takes the package from the repository, on the lowest Python."""
    lines = (ROOT / ".binder" / "requirements.txt").read_text("utf-8").splitlines()
    assert "." in lines
    assert (ROOT / ".binder" / "runtime.txt").read_text("utf-8").strip() == "python-3.11"
