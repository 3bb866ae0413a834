"""The command: python -m ldpopt_check FILE [--json] [--bits N] [--budget T]."""

import argparse
import json
import sys
from functools import partial

from ldpopt_check import MOST_BITS, MOST_BYTES, NOTHING, BadInput, NotCovered, Result, check, cover, need, outward

EXIT_CODES = "Exit code 0: proved; 1: refuted; 2: no design file; 3: not checked (not covered, or over the budget)"


def strict(text):
    """Load the JSON of a text strictly: no key occurs twice, and no NaN."""

    def once(pairs):
        need(len(dict(pairs)) == len(pairs), "a key is there twice")
        return dict(pairs)

    try:
        return json.loads(text.decode(), parse_constant=partial(need, False), object_pairs_hook=once)
    except ValueError as error:
        raise BadInput(f"it cannot be read as JSON: {str(error)!a}") from None


def read(path, budget=1.0):
    """Read the JSON of a file that is not too large."""
    max_bytes = int(MOST_BYTES * max(budget, 1))
    try:
        with open(path, "rb") as file:
            text = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"it cannot be read: {str(error)!a}") from None
    cover(
        len(text) <= max_bytes, f"a file of more than {max_bytes:,} bytes is not supported; a larger --budget allows it"
    )
    return strict(text)


def main():
    """Check the file that the command line names."""
    parser = argparse.ArgumentParser(prog="ldpopt_check", description=EXIT_CODES)
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--bits", type=int, default=128, help="binary digits at the start (default 128)")
    parser.add_argument("--budget", type=float, default=1.0, help="how many times twenty seconds it may take")
    options = parser.parse_args()
    try:
        need(64 <= options.bits <= MOST_BITS, f"--bits must lie between 64 and {MOST_BITS}")
        need(0 < options.budget < 1e9, "--budget must be a positive number")
        result = check(read(options.file, options.budget), options.bits, options.budget)
    except Exception as error:  # After any error the file is not judged, and the reason is printed.
        bad = isinstance(error, BadInput | RecursionError) and not isinstance(error, NotCovered)
        reason = error if isinstance(error, BadInput) else f"it cannot be judged ({type(error).__name__})"
        result = Result(
            [f"{'Bad file' if bad else 'Not checked'}: {reason}."], outward(NOTHING), outward(NOTHING), None
        )
        code = 2 if bad else 3
    else:
        code = int(bool(result.failures))
    message = f"The proof holds: value {result.value[0]}, bound {result.bound[1]}; the file "
    message += f"{'calls' if result.certified else 'does not call'} it certified. "
    message += f"Not checked: {', '.join(result.unchecked)}." if result.unchecked else "All of it was checked."
    outcome = ("proved", "refuted", "bad file", "not checked")[code]
    holds = {"outcome": outcome, "holds": None if code > 1 else not code}
    as_json = json.dumps(holds | result._asdict() | {"certified": bool(result.certified)})
    as_json = as_json.replace("-Infinity", '"-inf"').replace("Infinity", '"inf"')
    print(as_json if options.json else "\n".join(result.failures) or message)
    return code


if __name__ == "__main__":
    sys.exit(main())
