"""Run the named experiments, or every one in this folder, and record the verdicts for `ldpopt reproduce --list`."""

import sys
from pathlib import Path

from ldpopt import reproduce, strict
from ldpopt.files import write_text

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent / "ldpopt" / "reproduce" / "recorded.json"


def main() -> None:
    """Run, write the page of all verdicts, and record them."""
    verdicts = reproduce.recorded()
    for name in sys.argv[1:] or reproduce.EXPERIMENTS:
        verdicts[name] = reproduce.run(reproduce.experiment_named(name), HERE / name).to_dict()
        print(f"{name}: {verdicts[name]['outcome']}. {verdicts[name]['detail']}")
    write_text(HERE / "index.html", reproduce.index_page(HERE), force=True)
    in_order = {name: verdicts[name] for name in reproduce.EXPERIMENTS if name in verdicts}
    write_text(RECORDED, strict.json_text(in_order), force=True)


if __name__ == "__main__":
    main()
