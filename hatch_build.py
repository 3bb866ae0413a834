"""What a package index shows: README.md without pictures and links that lead into the repository."""

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # Only what builds the package has it; the text alone needs nothing.
    MetadataHookInterface = object

RELATIVE = r"\((?!https://|#|mailto:)[^)\s]*\)"


def on_an_index(readme: str) -> str:
    """README with relative pictures left out, and of relative links the words alone."""
    without_pictures = re.sub(rf"^!\[[^\]]*\]{RELATIVE}\n\n", "", readme, flags=re.MULTILINE)
    return re.sub(rf"(?<!!)\[([^\]]*)\]{RELATIVE}", r"\1", without_pictures)


class ReadmeHook(MetadataHookInterface):
    """Puts that text into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of the package."""
        readme = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": on_an_index(readme)}
