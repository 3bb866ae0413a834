"""The error that the kernel raises where numbers prove nothing."""

from __future__ import annotations

from ldpopt.errors import LdpoptError


class Unproved(LdpoptError, RuntimeError):
    """The numbers of a certificate do not prove a bound; the message says why."""
