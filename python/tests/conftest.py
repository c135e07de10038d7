"""Every test runs on a CPU device, unless CLNORM_DEVICE says otherwise; programs are cached in a folder of the session."""

import os
import tempfile

os.environ.setdefault("CLNORM_CACHE_DIR", os.path.join(tempfile.gettempdir(), "clnorm-python-tests"))
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
