"""What the kernel raises where numbers prove nothing."""

from __future__ import annotations

from ldpopt.errors import LdpoptError


class Unproved(LdpoptError, RuntimeError):
    """The numbers of a certificate do not prove what they should; the message says why."""
