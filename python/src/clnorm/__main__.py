"""`python -m clnorm …`: the tool clnorm, the same program as that of the C library."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "clnorm"
    if not program.exists():
        sys.exit("this build of the package has no tool: the static libraries of popt and jansson were missing")
    import clnorm  # noqa: F401 - chooses the OpenCL loader in the environment, which the tool inherits

    environment = dict(os.environ)
    beside = os.path.dirname(environment.get("CLNORM_OPENCL", ""))
    if beside:  # libraries that the loader needs lie there
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [beside, environment.get("LD_LIBRARY_PATH")]))
    os.execve(program, ["clnorm", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
