"""``python -m peer_probes PEER`` prints what the probes of a package find, as JSON."""

import importlib
import json
import sys

from peer_probes.base import MODULES, measured, run

importlib.import_module(f"peer_probes.{MODULES[sys.argv[1]]}")
print(json.dumps(run(sys.argv[1]) | {"pitfalls": measured(sys.argv[1])}))
