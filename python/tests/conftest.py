"""Every test runs on a CPU device, unless CLNORM_DEVICE says otherwise; PoCL's kernels are cached in a folder of the tests."""

import os
import tempfile

folder = os.path.join(tempfile.gettempdir(), "clnorm-python-tests")
os.environ.setdefault("CLNORM_CACHE", "0")  # PoCL compiles a kernel once more for the program's binary, which a cache keeps
if "PYTEST_XDIST_WORKER" in os.environ:  # PoCL before 6.0 loses files of a cache that two processes share
    os.environ.setdefault("POCL_CACHE_DIR", os.path.join(folder, "pocl-" + os.environ["PYTEST_XDIST_WORKER"]))
os.environ.setdefault("CLNORM_DEVICE", "cpu")

import numpy  # noqa: E402
import pytest  # noqa: E402

import clnorm  # noqa: E402


@pytest.fixture
def rng():
    return numpy.random.default_rng(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skips a test of float64 on a device without double precision."""
    try:
        return (yield)
    except clnorm.ClnormError as error:
        if "has no double precision" in str(error):
            pytest.skip(str(error))
        raise
