"""The files that a user downloads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.io.channels import to_csv
from ldpopt.labels import as_text


@dataclass(frozen=True)
class Taken:
    """Code and a command that make a state's result again, and its files by name.

    `code_name` is the name for the code.
    """

    code: str
    command: str
    files: Mapping[str, str]
    code_name: str = "studio.py"
    about: str = ""


def channel_files(channel: Channel, guarantees: Any = (), stem: str = "channel") -> dict[str, str]:
    """The JSON and the CSV file of a channel, by name. The CSV file has labels as text.

    >>> sorted(channel_files(Channel([[0.75, 0.25], [0.25, 0.75]])))
    ['channel.csv', 'channel.json']
    """
    files = {f"{stem}.json": channel.to_json(guarantees)}
    try:
        files[f"{stem}.csv"] = to_csv(channel)
    except InvalidInput:
        labels = [[as_text(label) for label in side] for side in (channel.inputs, channel.outputs)]
        with suppress(InvalidInput):  # labels that CSV cannot hold, such as blanks, are in the JSON file only
            files[f"{stem}.csv"] = to_csv(Channel(channel.matrix, *labels))
    return files
