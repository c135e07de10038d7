"""Devices with memory of their own: inputs are copied to them, and outputs back."""

import pathlib
import shutil
import subprocess

import pytest

from test_process import python


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    """A loader of OpenCL that reports every device as a GPU."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("loader") / "libOpenCL.so"
    source = pathlib.Path(__file__).with_name("staging.c")
    options = ["-DCL_TARGET_OPENCL_VERSION=300", "-shared", "-fPIC", "-Wl,--no-as-needed"]
    subprocess.run([compiler, *options, "-o", library, source, "-l:libOpenCL.so.1", "-ldl"], check=True)
    return str(library)


def test_threads_write_different_columns_of_an_array(loader):
    program = (
        "import threading, numpy, clnorm\n"
        "assert clnorm.select('gpu').kind == 'gpu'\n"
        "x = numpy.random.default_rng(1).standard_normal((256, 1000), dtype='f4')\n"
        "left, right = clnorm.gelu(x[:, :500].copy()), clnorm.gelu(x[:, 500:].copy())\n"
        "for _ in range(30):\n"
        "    y = numpy.zeros_like(x)\n"
        "    halves = [slice(0, 500), slice(500, 1000)]\n"
        "    threads = [threading.Thread(target=lambda h=h: clnorm.gelu(x[:, h], out=y[:, h])) for h in halves]\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n"
        "    assert (y == numpy.hstack([left, right])).all()\n"
    )
    done = python(program, CLNORM_OPENCL=loader, CLNORM_DEVICE="gpu")
    assert done.returncode == 0, done.stderr


def test_outputs_of_several_strides(loader):
    program = (
        "import numpy, clnorm\n"
        "x = numpy.random.default_rng(1).standard_normal((2, 3, 4, 64), dtype='f4')\n"
        "y = numpy.full((3, 4, 2, 80), 7, 'f4')\n"
        "clnorm.rms_norm(x, out=y.transpose(2, 0, 1, 3)[..., :64])\n"
        "assert (y.transpose(2, 0, 1, 3)[..., :64] == clnorm.rms_norm(x)).all() and (y[..., 64:] == 7).all()\n"
    )
    done = python(program, CLNORM_OPENCL=loader, CLNORM_DEVICE="gpu")
    assert done.returncode == 0, done.stderr
