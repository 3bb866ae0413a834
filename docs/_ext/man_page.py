"""The page of the manual, ``ldpopt.1``, from the text of every command's ``--help``; Docutils writes it for ``man``.

python docs/_ext/man_page.py [FOLDER]     writes FOLDER/ldpopt.1; then: man -l FOLDER/ldpopt.1
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from docutils.core import publish_string
from made_pages import commands

from ldpopt.cli.program import FIRST_STEPS
from ldpopt.version import __version__

HEAD = f"""\
======
ldpopt
======

-------------------------------------------------
design, certify and use locally private mechanisms
-------------------------------------------------

:Manual section: 1
:Manual group: ldpopt
:Version: {__version__}

"""


def man_page() -> str:
    """The page in the language of ``man``: a section for each command, with what ``--help`` says of it."""
    parts = re.findall(r"##+ `(.+?)`\n+```text\n(.*?)```", commands(), re.DOTALL)
    begin = [("DESCRIPTION", FIRST_STEPS), *((name.upper(), text) for name, text in parts)]
    sections = []
    for name, text in begin:
        lines = "\n".join(f"  {line}".rstrip() for line in text.splitlines())
        sections.append(f"{name}\n{'=' * len(name)}\n\n::\n\n{lines}\n\n")
    return publish_string(HEAD.replace("-" * 49, "-" * 50) + "".join(sections), writer="manpage").decode()


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    (folder / "ldpopt.1").write_text(man_page(), "utf-8")
    print(folder / "ldpopt.1")
