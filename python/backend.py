"""The build backend: scikit-build-core's, whose wheels are tagged with the oldest glibc that they run on."""

import pathlib
import re
import subprocess
import sys
import zipfile

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403 - the other functions of a backend


def glibc_of(wheel):
    """The minor version of glibc 2 that a wheel's programs and libraries need, 17 or more."""
    with zipfile.ZipFile(wheel) as files:
        binaries = [data for data in map(files.read, files.namelist()) if data.startswith(b"\x7fELF")]
    return max([17, *(int(minor) for data in binaries for minor in re.findall(rb"GLIBC_2\.(\d+)\0", data))])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = build.build_wheel(wheel_directory, config_settings, metadata_directory)
    found = re.search(r"-linux_(\w+)\.whl$", name)
    if not found:
        return name
    wheel = pathlib.Path(wheel_directory, name)
    tag = f"manylinux_2_{glibc_of(wheel)}_{found[1]}"
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(wheel)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
