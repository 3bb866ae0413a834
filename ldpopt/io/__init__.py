"""Files: channels, pairs of populations, and writing files whole or not at all."""

from ldpopt.files.atomic import read_text, write_bytes_atomically, write_text
from ldpopt.io.channels import (
    channel_to_csv,
    is_json,
    parse_channel,
    parse_matrix_csv,
    read_channel,
    to_opendp,
    write_channel,
)
from ldpopt.io.populations import Populations, read_microdata, read_pair, seen_once

__all__ = [
    "Populations", "channel_to_csv", "is_json", "parse_channel", "parse_matrix_csv", "read_channel", "read_microdata",
    "read_pair", "read_text", "seen_once", "to_opendp", "write_bytes_atomically", "write_channel", "write_text",
]  # fmt: skip
