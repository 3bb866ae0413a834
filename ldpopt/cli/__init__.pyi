from ldpopt.cli.outputs import USAGE_ERROR as USAGE_ERROR
from ldpopt.cli.outputs import Command as Command
from ldpopt.cli.outputs import Program as Program
from ldpopt.cli.outputs import ProgramCommand as ProgramCommand
from ldpopt.cli.outputs import ShortHelp as ShortHelp
from ldpopt.cli.outputs import claim as claim
from ldpopt.cli.outputs import claim_folder as claim_folder
from ldpopt.cli.outputs import free_folder as free_folder
from ldpopt.cli.outputs import from_arrow as from_arrow
from ldpopt.cli.outputs import kind_of as kind_of
from ldpopt.cli.outputs import note as note
from ldpopt.cli.outputs import progress as progress
from ldpopt.cli.outputs import promise as promise
from ldpopt.cli.outputs import say as say
from ldpopt.cli.outputs import visible as visible
from ldpopt.cli.outputs import write_all as write_all
from ldpopt.cli.outputs import write_folder as write_folder
from ldpopt.cli.parameters import FileFlags as FileFlags
from ldpopt.cli.parameters import PairFlags as PairFlags
from ldpopt.cli.parameters import bins as bins
from ldpopt.cli.parameters import number as number
from ldpopt.cli.parameters import numbers as numbers
from ldpopt.cli.parameters import options as options
from ldpopt.cli.parameters import seconds as seconds
from ldpopt.cli.program import app as app
from ldpopt.cli.streams import FOLDER as FOLDER
from ldpopt.cli.streams import refuse_stream as refuse_stream

def main() -> int: ...

__all__ = [
    "FOLDER",
    "USAGE_ERROR",
    "Command",
    "FileFlags",
    "PairFlags",
    "Program",
    "ProgramCommand",
    "ShortHelp",
    "app",
    "bins",
    "claim",
    "claim_folder",
    "free_folder",
    "from_arrow",
    "kind_of",
    "main",
    "note",
    "number",
    "numbers",
    "options",
    "progress",
    "promise",
    "refuse_stream",
    "say",
    "seconds",
    "visible",
    "write_all",
    "write_folder",
]
