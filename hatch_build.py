"""What a package index shows: README as it reads there, and the addresses of the project.

No address is written down anywhere, so that none can be wrong. What builds the package asks where the source is: a
clone knows where it was cloned from, and GitHub says so to its workflows. Where nobody knows, there are no addresses.
A source archive carries those of the place where it was made (PKG-INFO), and a wheel made of it has the same.

    python hatch_build.py    # prints the addresses that a build here would put in
"""

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # Only what builds the package has it; the rest needs nothing.
    MetadataHookInterface = object

ROOT = Path(__file__).resolve().parent
RELATIVE = r"\((?!https://|#|mailto:)([^)\s]*)\)"
HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}"
PLACE = r"(?P<path>(?:[\w.~-]+/)+[\w.~-]+?)(?:\.git)?/?"
ADDRESSES = [
    re.compile(rf"https://(?:[^@/\s]*@)?(?P<host>{HOST}(?::\d+)?)/{PLACE}", re.ASCII),
    re.compile(rf"ssh://(?:[\w.-]+@)?(?P<host>{HOST})(?::\d+)?/{PLACE}", re.ASCII),
    re.compile(rf"(?:[\w.-]+@)?(?P<host>{HOST}):/?{PLACE}", re.ASCII),
]
SSH_ALONE = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
"""Machines that take SSH where its port is closed, and those whose pages they belong to."""

PAGES = {
    "github": {"Issues": "issues", "Changelog": "blob/HEAD/CHANGELOG.md", "Security": "security/policy"},
    "gitlab": {"Issues": "-/issues", "Changelog": "-/blob/HEAD/CHANGELOG.md", "Security": "-/blob/HEAD/SECURITY.md"},
}
"""What the hosts that are known call their pages; of another host nothing but the address itself is known."""


def https(remote: str) -> str | None:
    """The page of a repository that git reads by https or ssh, without user and password; None for what has no page.

    A path, another scheme, a machine without a full name, and anything with a query or with blanks in it have none.
    """
    for pattern in ADDRESSES:
        found = pattern.fullmatch(remote)
        if found and not {".", "..", ".git"} & set(found["path"].split("/")):
            host = found["host"].lower()
            return f"https://{SSH_ALONE.get(host, host)}/{found['path']}"
    return None


@functools.cache
def git(root: Path, *arguments: str) -> str | None:
    """What git says of the repository at `root` itself, None where there is none, or no git."""
    if not (root / ".git").exists():  # Another repository, of which `root` is a folder, is not asked.
        return None
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def by_github(root: Path, environ: Mapping[str, str]) -> str | None:
    """The repository whose workflow runs, if `root` is what it checked out."""
    workspace = environ.get("GITHUB_WORKSPACE")
    if workspace and Path(workspace).resolve() != root.resolve():  # A workflow of others, which builds this beside.
        return None
    if "CODESPACES" in environ:  # There the same variables name what somebody works on, which may be anything.
        return None
    server, repository = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
    return https(f"{server.rstrip('/')}/{repository}") if server and repository else None


def source(root: Path, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Where the source is, and the kind of its host: "github", "gitlab" or another; None where it is not known."""
    # An unpacked archive is from where the archive was made, not from where it lies now.
    if (root / "PKG-INFO").exists():
        return None
    address = https(git(root, "remote", "get-url", "origin") or "") or by_github(root, environ)
    if address is None:
        return None
    host = str(urlsplit(address).hostname)
    if host in ("github.com", urlsplit(environ.get("GITHUB_SERVER_URL", "")).hostname):
        return address, "github"
    return address, "gitlab" if host.startswith("gitlab.") else host


def project_urls(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The addresses of the project, by the names that package indexes give them; none that is not known.

    SITE_ADDRESS in `environ` names the site of the documentation.
    """
    site = environ.get("SITE_ADDRESS", "")
    known = {"Documentation": site} if re.fullmatch(rf"https://{HOST}(?::\d+)?/[\w.~/-]*", site, re.ASCII) else {}
    found = source(root, environ)
    if found:
        address, kind = found
        known |= {"Source": address} | {name: f"{address}/{page}" for name, page in PAGES.get(kind, {}).items()}
    return {"Homepage": next(iter(known.values())), **known} if known else {}


def file_address(path: str, line: int, root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str | None:
    """The page of a line of a file, as it is in the commit that is checked out; None if no host is known to have it."""
    found = source(root, environ)
    if found is None or found[1] not in PAGES:
        return None
    if by_github(root, environ) == found[0]:
        commit = environ.get("GITHUB_SHA")
    else:  # A commit that was never pushed has no page.
        commit = git(root, "rev-parse", "HEAD") if git(root, "branch", "--remotes", "--contains", "HEAD") else None
    between = "blob" if found[1] == "github" else "-/blob"
    return f"{found[0]}/{between}/{commit}/{path}#L{line}" if commit else None


def on_an_index(readme: str, address: str | None = None) -> str:
    """README without pictures of the repository; its links into it lead to `address`, or are words alone."""
    without_pictures = re.sub(rf"^!\[[^\]]*\]{RELATIVE}\n\n", "", readme, flags=re.MULTILINE)
    linked = rf"[\1]({address}/\2)" if address else r"\1"
    return re.sub(rf"(?<!!)\[([^\]]*)\]{RELATIVE}", linked, without_pictures)


class IndexHook(MetadataHookInterface):
    """Puts that text and those addresses into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description and the addresses of the package."""
        root = Path(self.root)
        if (root / "PKG-INFO").exists():  # hatchling has read both in it; what is not in it is not known.
            metadata.setdefault("urls", {})
            return
        urls = project_urls(root)
        readme = (root / "README.md").read_text("utf-8")
        files = urls["Changelog"].removesuffix("/CHANGELOG.md") if "Changelog" in urls else None
        metadata["readme"] = {"content-type": "text/markdown", "text": on_an_index(readme, files)}
        metadata["urls"] = urls


if __name__ == "__main__":
    for name, address in project_urls().items():
        print(f"{name}: {address}")
