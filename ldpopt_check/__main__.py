"""The command: python -m ldpopt_check FILE [--json] [--bits N] [--budget T]."""

import argparse
import json
import sys
from functools import partial

from ldpopt_check import MOST_BITS, MOST_BYTES, NOTHING, BadInput, Result, check, need, outward


def strict(text):
    """The JSON of a text, read strictly: no key may be there twice, and no NaN."""

    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "a key is there twice")
        return dict(pairs)

    try:
        return json.loads(text.decode(), parse_constant=partial(need, False), object_pairs_hook=once)
    except ValueError as error:
        raise BadInput(f"it cannot be read as JSON: {str(error)!a}") from None


def read(path, budget=1.0):
    """The JSON of a file that is not too large."""
    most = int(MOST_BYTES * max(budget, 1))
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"it cannot be read: {str(error)!a}") from None
    need(len(text) <= most, "a file of this size is not supported")
    return strict(text)


def main():
    """Check the file that the command line names."""
    parser = argparse.ArgumentParser(prog="ldpopt_check", description="Exit code 0: it holds, 1: not, 2: bad input")
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--bits", type=int, default=128, help="binary digits at the start (default 128)")
    parser.add_argument("--budget", type=float, default=1.0, help="how many times twenty seconds it may take")
    asked = parser.parse_args()
    try:
        need(64 <= asked.bits <= MOST_BITS, f"--bits must lie between 64 and {MOST_BITS}")
        need(0 < asked.budget < 1e9, "--budget must be a positive number")
        found = check(read(asked.file, asked.budget), asked.bits, asked.budget)
    except Exception as error:  # Whatever a file brings about, it is not judged, and says why.
        why = error if isinstance(error, BadInput) else f"it cannot be judged ({type(error).__name__})"
        found = Result([f"Bad or unsupported file: {why}."], outward(NOTHING), outward(NOTHING), None)
    code = 2 if found.certified is None else int(bool(found.failures))
    told = f"The proof holds: value {found.value[0]}, bound {found.bound[1]}; the file "
    told += f"{'calls' if found.certified else 'does not call'} it certified. Not checked: method and note."
    as_json = json.dumps({"holds": not code} | found._asdict() | {"certified": bool(found.certified)})
    as_json = as_json.replace("-Infinity", '"-inf"').replace("Infinity", '"inf"')
    print(as_json if asked.json else "\n".join(found.failures) or told)
    return code


if __name__ == "__main__":
    sys.exit(main())
