"""Run every experiment in this folder and record the verdicts for `ldpopt reproduce --list`."""

from pathlib import Path

from ldpopt import reproduce, strictjson
from ldpopt.files import write_text

HERE = Path(__file__).resolve().parent
VERDICTS = {}
for name, experiment in reproduce.EXPERIMENTS.items():
    VERDICTS[name] = reproduce.run(experiment, HERE / name).to_dict()
    print(f"{name}: {VERDICTS[name]['outcome']}. {VERDICTS[name]['detail']}")
write_text(HERE / "index.html", reproduce.index_page(HERE), force=True)
recorded = HERE.parent / "ldpopt" / "reproduce" / "recorded.json"
write_text(recorded, strictjson.dumps(VERDICTS), force=True)
