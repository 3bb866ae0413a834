"""What a package index, conda and Binder are given is true and complete."""

import email
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "ldpopt" / "version.py").read_text("utf-8"))[1]
source = pytest.mark.skipif(not (ROOT / "hatch_build.py").is_file(), reason="only beside the source")
CONDA_NAMES = {"matplotlib": "matplotlib-base", "prometheus-client": "prometheus_client", "dask": "distributed"}
CONDA_EXTRAS = ("survey", "dask", "paper", "spss", "collect", "sklearn", "studio")
WORKFLOW = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "owner/repo", "GITHUB_SHA": "a" * 40}
PLACE = "https://github.com/owner/repo"
URLS = {
    "Homepage": PLACE, "Source": PLACE, "Issues": f"{PLACE}/issues",
    "Changelog": f"{PLACE}/blob/HEAD/CHANGELOG.md", "Security": f"{PLACE}/security/policy",
}  # fmt: skip


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


@source
def test_relative_links_lead_to_the_repository_where_it_is_known():
    """With an address of its files, the words of a relative link lead there; pictures are left out all the same."""
    assert _hook().on_an_index("see [a](docs/a.md#b)", PLACE) == f"see [a]({PLACE}/docs/a.md#b)"
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = _hook().on_an_index(readme, f"{PLACE}/blob/HEAD")
    assert f"]({PLACE}/blob/HEAD/docs/" in shown
    assert not re.findall(r"\]\((?!https://|#)|!\[[^\]]*\]\(https://github", shown)


@source
@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/owner/repo", PLACE),
        ("https://github.com/owner/repo.git", PLACE),
        ("https://GitHub.com/owner/repo.git/", PLACE),
        ("git@github.com:owner/repo.git", PLACE),
        ("github.com:owner/repo", PLACE),
        ("git@github.com:/owner/repo.git", PLACE),
        ("ssh://git@github.com/owner/repo.git", PLACE),
        ("ssh://git@ssh.github.com:443/owner/repo.git", PLACE),
        ("https://user:secret@github.com/owner/repo", PLACE),
        ("https://gitlab-ci-token:secret@gitlab.com/group/sub/thing.git", "https://gitlab.com/group/sub/thing"),
        ("https://git.example.org:8443/thing/x.y", "https://git.example.org:8443/thing/x.y"),
        ("ssh://git@git.example.org:2222/thing/x.y.git", "https://git.example.org/thing/x.y"),
        *((none, None) for none in (
            "", "/srv/git/repo.git", "../repo", "C:/Users/me/repo", "C:\\me\\repo", "file:///srv/owner/repo", "x",
            "http://github.com/owner/repo", "git://github.com/owner/repo", "https://localhost/owner/repo", "host:a/b",
            "https://127.0.0.1:8080/git/owner/repo", "git@10.0.0.1:owner/repo", "https://github.com/owner",
            "https://github.com/owner/../repo", "https://github.com/owner/repo?a=b", "https://github.com/o/r#b",
            "https://github.com/owner/repo\nProject-URL: x, https://evil.org/a", "https://github.com/owner/re po",
            "https://github.com/owner/.git", "https://github.com//repo", "javascript:alert(1)/x/y",
        )),
    ],
)  # fmt: skip
def test_remotes_become_addresses(remote, address):
    """An https or ssh remote becomes the page of the repository, without secrets; what has no page becomes nothing."""
    assert _hook().https(remote) == address


@source
@pytest.mark.parametrize(
    ("environ", "urls"),
    [
        ({}, {}),
        (WORKFLOW, URLS),
        (WORKFLOW | {"GITHUB_WORKSPACE": "."}, URLS),
        (WORKFLOW | {"GITHUB_WORKSPACE": "/of/another/project"}, {}),
        (WORKFLOW | {"CODESPACES": "true"}, {}),
        (
            WORKFLOW | {"GITHUB_SERVER_URL": "https://github.example.org"},
            {name: one.replace("github.com", "github.example.org") for name, one in URLS.items()},
        ),
        ({"GITHUB_REPOSITORY": "owner/repo"}, {}),
        (WORKFLOW | {"GITHUB_REPOSITORY": "owner/re po"}, {}),
        (WORKFLOW | {"GITHUB_SERVER_URL": "http://10.0.0.1"}, {}),
        ({"SITE_ADDRESS": "http://a.org/b"}, {}),
        ({"SITE_ADDRESS": "https://a.org/b\nx"}, {}),
        ({"SITE_ADDRESS": "https://a.org/b/"}, {"Homepage": "https://a.org/b/", "Documentation": "https://a.org/b/"}),
        (
            WORKFLOW | {"SITE_ADDRESS": "https://a.org/b/"},
            {"Homepage": "https://a.org/b/", "Documentation": "https://a.org/b/"} | dict(list(URLS.items())[1:]),
        ),
    ],
)
def test_addresses_come_from_the_workflow(tmp_path, monkeypatch, environ, urls):
    """GitHub's variables count where they are about this folder; addresses that are none are left out."""
    monkeypatch.chdir(tmp_path)
    assert _hook().project_urls(tmp_path, environ) == urls


def _git(folder, *arguments):
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, env=quiet, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@source
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize(
    ("remote", "first", "count"),
    [
        (None, None, 0),
        ("/srv/git/repo.git", None, 0),
        ("git@github.com:owner/repo.git", PLACE, 5),
        ("https://gitlab.com/a/b/c.git", "https://gitlab.com/a/b/c", 5),
        ("https://git.example.org/a/b.git", "https://git.example.org/a/b", 2),
    ],
)
def test_addresses_come_from_the_remote(tmp_path, remote, first, count):
    """A clone has the addresses of its origin, a folder in somebody's repository none, and an archive those it says."""
    _git(tmp_path, "init", "-q")
    if remote:
        _git(tmp_path, "remote", "add", "origin", remote)
    hook = _hook()
    found = hook.project_urls(tmp_path, {})
    assert found.get("Source") == first
    if first:  # What the clone says counts more than what surrounds it.
        others = WORKFLOW | {"GITHUB_REPOSITORY": "somebody/else"}
        assert hook.project_urls(tmp_path, others) == found
    assert len(found) == count
    assert all(one == first or one.startswith(f"{first}/") for one in found.values())
    inside = tmp_path / "vendored"
    inside.mkdir()
    assert hook.project_urls(inside, {}) == {}
    (tmp_path / "PKG-INFO").write_text("Name: ldpopt\n", "utf-8")
    assert hook.project_urls(tmp_path, WORKFLOW) == {}


@source
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_lines_of_files_have_an_address_once_they_are_pushed(tmp_path):
    """The page of a line names the commit; one that no remote has, has no page. In a workflow GitHub names it."""
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "remote", "add", "origin", "git@github.com:owner/repo.git")
    _git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    assert _hook().file_address("a/b.py", 7, tmp_path, {}) is None
    _git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    commit = _git(tmp_path, "rev-parse", "HEAD")
    assert _hook().file_address("a/b.py", 7, tmp_path, {}) == f"{PLACE}/blob/{commit}/a/b.py#L7"
    _git(tmp_path, "remote", "set-url", "origin", "https://gitlab.com/owner/repo")
    assert _hook().file_address("a.py", 1, tmp_path, {}) == f"https://gitlab.com/owner/repo/-/blob/{commit}/a.py#L1"
    _git(tmp_path, "remote", "set-url", "origin", "https://git.example.org/owner/repo")
    assert _hook().file_address("a.py", 1, tmp_path, {}) is None
    assert _hook().file_address("a.py", 1, tmp_path, WORKFLOW) is None
    _git(tmp_path, "remote", "remove", "origin")
    assert _hook().file_address("a.py", 1, tmp_path, WORKFLOW) == f"{PLACE}/blob/{'a' * 40}/a.py#L1"
    assert _hook().file_address("a.py", 1, tmp_path / "nothing", {}) is None


def _build(kind, folder, out, environ):
    code = f"import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"
    said = ("GITHUB_", "SITE_ADDRESS", "CODESPACES")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(said)}
    command = [sys.executable, "-P", "-c", code, str(out)]
    done = subprocess.run(command, cwd=folder, env=clean | environ, check=True, capture_output=True, text=True)
    return out / done.stdout.split()[-1]


def _told(text):
    message = email.message_from_string(text)
    assert message.get_all("Dynamic") is None
    return dict(one.split(", ") for one in message.get_all("Project-URL", []))


@source
@pytest.mark.parametrize(("environ", "urls"), [({}, {}), (WORKFLOW, URLS)], ids=["unknown", "workflow"])
def test_archives_and_wheels_carry_the_addresses(tmp_path, environ, urls):
    """An archive has the addresses of where it was made, and a wheel made of it elsewhere has the same."""
    pytest.importorskip("hatchling")
    folder = tmp_path / "source"
    (folder / "ldpopt").mkdir(parents=True)
    (folder / "ldpopt" / "__init__.py").touch()
    shutil.copy(ROOT / "ldpopt" / "version.py", folder / "ldpopt")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    archive = _build("sdist", folder, tmp_path, environ)
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert _told((unpacked / "PKG-INFO").read_text("utf-8")) == urls
    elsewhere = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "packagers/feedstock"}
    wheel = _build("wheel", unpacked, tmp_path, elsewhere)
    with zipfile.ZipFile(wheel) as file:
        metadata = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        assert _told(file.read(metadata).decode()) == urls


@source
def test_the_hook_fills_in_known_metadata(tmp_path, monkeypatch):
    """The hook fills in description and addresses, and leaves those of an archive as the archive says them."""
    for name in (*WORKFLOW, "SITE_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    kind = _hook().IndexHook
    monkeypatch.setattr(kind, "root", str(tmp_path), raising=False)
    hook = kind.__new__(kind)
    (tmp_path / "README.md").write_text("[a](b.md)", "utf-8")
    metadata = {}
    hook.update(metadata)
    assert metadata == {"readme": {"content-type": "text/markdown", "text": "a"}, "urls": {}}
    (tmp_path / "PKG-INFO").touch()
    said = {"urls": {"Source": "https://a.org/b"}}
    hook.update(said)
    assert said == {"urls": {"Source": "https://a.org/b"}}


def test_the_pythons_that_are_promised():
    """The classifiers name the versions from the lowest on, and CI's files run the same."""
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert named == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={named[0]}"
    workflow = ROOT / ".github" / "workflows" / "check.yml"
    if workflow.is_file():
        assert all(f'"{one}"' in workflow.read_text("utf-8") for one in named)


@source
def test_the_conda_recipe_has_the_requirements_of_the_package():
    """Version, licence, command and every requirement with its bounds, under conda's names."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    assert f'version: "{VERSION}"' in recipe
    assert f"license: {PROJECT['license']}" in recipe
    assert all(f"- {name} = {target}" in recipe for name, target in PROJECT["scripts"].items())
    run = recipe.split("  run:\n")[1].split("  # Of the extras")[0]
    stated = {tuple(line.strip("- ").split(" ")) for line in run.splitlines()}
    needed = {tuple(re.match(r"([\w-]+)(.*)", one).groups()) for one in PROJECT["dependencies"]}
    renamed = {(CONDA_NAMES.get(name, name), bounds) for name, bounds in needed}
    assert stated == renamed | {("python", PROJECT["requires-python"])}


@source
def test_the_conda_recipe_bounds_the_packages_of_extras():
    """What an extra needs is not installed with the package, and where it is there it has the extra's bounds."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text("utf-8")
    lines = recipe.split("  run_constraints:\n")[1].split("\n\n")[0].splitlines()
    stated = {line.strip("- ").replace(" ", "", 1) for line in lines}
    extras = PROJECT["optional-dependencies"]
    asked = [one for name in CONDA_EXTRAS for one in extras[name] if not one.startswith("ldpopt[")]
    parts = {re.match(r"([\w-]+)(?:\[.*\])?([^;]*)", one).groups() for one in asked}
    assert stated == {f"{CONDA_NAMES.get(name, name)}{bounds.strip()}" for name, bounds in parts}


@source
def test_the_version_stands_in_one_place():
    """What repeats it agrees with it."""
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def satisfied(bounds: str, version: str) -> bool:
    """Whether a plain version is within bounds such as `>=1.2,<3,!=1.16.0`."""
    numbers = [int(part) for part in re.findall(r"\d+", version.split("+")[0])]
    for sign, bound in re.findall(r"(>=|<|!=)\s*([\d.]+)", bounds):
        limit = [int(part) for part in bound.split(".")]
        width = max(len(numbers), len(limit))
        left, right = (x + [0] * (width - len(x)) for x in (numbers, limit))
        if not {">=": left >= right, "<": left < right, "!=": left != right}[sign]:
            return False
    return True


@source
def test_the_image_installs_pinned_versions():
    """Every requirement of the package and of its collector has one version with hashes, within its bounds."""
    text = (ROOT / "docs" / "deploy" / "constraints.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+?)(?: ;.*)? \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE))
    assert len(pinned) == text.count("==") > 40
    extras = PROJECT["optional-dependencies"]
    for requirement in PROJECT["dependencies"] + extras["survey"] + extras["collect"]:
        if not requirement.startswith("ldpopt["):
            name, bounds = re.match(r"([\w-]+)(?:\[.*\])?([^;]*)", requirement).groups()
            assert satisfied(bounds, pinned[name]), f"{requirement}: {pinned[name]}"
    dockerfile = (ROOT / "docs" / "deploy" / "Dockerfile").read_text("utf-8")
    assert "FROM ${BASE_IMAGE}\n" in dockerfile
    assert re.findall(r"^FROM.*", dockerfile, re.MULTILINE) == ["FROM ${BASE_IMAGE}"]
    assert "--require-hashes" in dockerfile


@source
@pytest.mark.skipif(not (ROOT / ".ci" / "release").is_file() or os.name == "nt", reason="only in a clone")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("python:3.12-slim", 2), ("python@sha256:", 2), ("python:3.12-slim@sha256:FILL-IN", 2), ("", 2),
        (f"python:3.12-slim@sha256:{'0a' * 32}", 0), (f"python@sha256:{'0a' * 31}", 2),
    ],
)  # fmt: skip
def test_an_image_without_a_digest_is_refused(tmp_path, line, code):
    """The base is named with a digest, or nothing is built."""
    for place in (".ci/release", "ldpopt/version.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    (tmp_path / "docs" / "deploy").mkdir(parents=True)
    (tmp_path / "docs" / "deploy" / "base-image").write_text(f"# a comment\n{line}\n", "utf-8")
    done = subprocess.run(["bash", ".ci/release", "base"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout == (f"{line}\n" if code == 0 else "")


@source
@pytest.mark.skipif(not (ROOT / ".ci" / "release").is_file() or os.name == "nt", reason="only in a clone")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, 0),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}, {"name": "b"}]}, 1),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}]}, 3),
        ({"dependencies": []}, 3), ({}, 3), ([], 3), (None, 3),
    ],
)  # fmt: skip
def test_no_answer_about_advisories_is_no_pass(tmp_path, answer, code):
    """A package that a service does not know was not scanned, whatever the scanner's own code is."""
    found = tmp_path / "found.json"
    if answer is not None:
        found.write_text(json.dumps(answer), "utf-8")
    done = subprocess.run(["bash", ".ci/release", "judge", str(found)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == code


@source
@pytest.mark.skipif(not (ROOT / ".binder").is_dir(), reason="only in a clone")
def test_binder_installs_this_package():
    """Binder takes the package from the repository, on the lowest Python."""
    lines = (ROOT / ".binder" / "requirements.txt").read_text("utf-8").splitlines()
    assert ".[survey]" in lines
    assert (ROOT / ".binder" / "runtime.txt").read_text("utf-8").strip() == "python-3.11"
