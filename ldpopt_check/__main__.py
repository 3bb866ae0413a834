"""The command: python -m ldpopt_check FILE [--json] [--bits N] [--budget T]."""

import argparse
import json
import sys
from functools import partial

from ldpopt_check import MOST_BITS, MOST_BYTES, NOTHING, BadInput, NotCovered, Result, check, cover, need, outward

EXIT_CODES = "Exit code 0: proved; 1: refuted; 2: no design file; 3: not checked (not covered, or over the budget)"


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
    cover(len(text) <= most, f"a file of more than {most:,} bytes is not supported; a larger --budget allows it")
    return strict(text)


def main():
    """Check the file that the command line names."""
    parser = argparse.ArgumentParser(prog="ldpopt_check", description=EXIT_CODES)
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
        bad = isinstance(error, BadInput | RecursionError) and not isinstance(error, NotCovered)
        why = error if isinstance(error, BadInput) else f"it cannot be judged ({type(error).__name__})"
        found = Result([f"{'Bad file' if bad else 'Not checked'}: {why}."], outward(NOTHING), outward(NOTHING), None)
        code = 2 if bad else 3
    else:
        code = int(bool(found.failures))
    told = f"The proof holds: value {found.value[0]}, bound {found.bound[1]}; the file "
    told += f"{'calls' if found.certified else 'does not call'} it certified. "
    told += f"Not checked: {', '.join(found.unchecked)}." if found.unchecked else "All of it was checked."
    outcome = ("proved", "refuted", "bad file", "not checked")[code]
    holds = {"outcome": outcome, "holds": None if code > 1 else not code}
    as_json = json.dumps(holds | found._asdict() | {"certified": bool(found.certified)})
    as_json = as_json.replace("-Infinity", '"-inf"').replace("Infinity", '"inf"')
    print(as_json if asked.json else "\n".join(found.failures) or told)
    return code


if __name__ == "__main__":
    sys.exit(main())
