"""Processes: threads, fork, exit, memory, a missing loader or driver, the tool."""

import copy
import multiprocessing
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import time
from concurrent import futures

import numpy
import pytest
import reference

import clnorm
from clnorm import __main__, _device


def python(program, **environment):
    """Runs a program in a new process."""
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


def test_devices_and_selection():
    devices = clnorm.devices()
    assert clnorm.select() in devices and clnorm.select(devices[0]) is devices[0]
    assert clnorm.select("cpu;gpu").kind in ("cpu", "gpu")
    assert all(device.memory > 0 and device.compute_units > 0 and device.name in repr(device) for device in devices)
    with pytest.raises(clnorm.ClnormError, match="no OpenCL device matches") as raised:
        clnorm.select("name=nothing has this name")
    assert raised.value.status == "DEVICE_NOT_FOUND"
    with pytest.raises(ValueError, match="selector"):
        clnorm.select("memory>>1")
    clnorm.select()


def test_a_pickled_device_is_looked_up_again():
    """Its cl_device_id means nothing in another process."""
    device = clnorm.select()
    clnorm.gelu(numpy.ones((2, 8), "f4"))  # gives the device a host, which cannot be copied
    assert copy.copy(device) is device and copy.deepcopy({"device": device})["device"] is device
    assert pickle.loads(pickle.dumps(device)) == device
    program = (
        f"import pickle, numpy, clnorm\nclnorm.select(pickle.loads({pickle.dumps(device)!r}))\n"
        "print(clnorm.gelu(numpy.zeros((2, 8), 'f4')).sum())"
    )
    done = python(program)
    assert done.stdout == "0.0\n", done.stderr


@pytest.mark.parametrize("uuid,known_as", [("", "index 0:0"), ("a1b2", "uuid a1b2")])
def test_a_pickled_device_that_is_not_here(uuid, known_as, monkeypatch):
    device, = clnorm.devices()[:1]
    device.uuid, device.index, device.name = uuid, "0:0", "of another machine"
    written = pickle.dumps(device)
    with pytest.raises(clnorm.ClnormError, match=f"'of another machine' of .*, {known_as}$") as raised:
        pickle.loads(written)
    assert raised.value.status == "DEVICE_NOT_FOUND"
    device.index = "9:9"  # as another selection of drivers numbers it
    monkeypatch.setattr(_device, "devices", lambda: [device])
    if uuid:
        assert pickle.loads(written) is device
    else:
        with pytest.raises(clnorm.ClnormError):
            pickle.loads(written)


def test_the_variable_selects():
    done = python("import clnorm; clnorm.select()", CLNORM_DEVICE="name=nothing")
    assert done.returncode != 0 and "no OpenCL device matches 'name=nothing'" in done.stderr


def test_threads(rng):
    arrays = rng.standard_normal((6, 200, 96)).astype("f4")

    def work(x):
        expected = reference.norm(x)
        return all(numpy.abs(clnorm.layer_norm(x) - expected).max() <= 1e-4 for _ in range(50))

    with futures.ThreadPoolExecutor(len(arrays)) as pool:
        assert list(pool.map(work, arrays)) == [True] * len(arrays)


def test_other_threads_run_while_the_device_works():
    x = numpy.ones((20000, 4096), "f4")
    y = clnorm.layer_norm(x)
    ticks = 0

    def work():
        for _ in range(3):
            clnorm.layer_norm(x, out=y)

    with futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        while not done.done():
            ticks += 1
            time.sleep(0.001)
        done.result()
    assert ticks > 10


def test_memory_of_the_host_is_not_copied():
    """A copy of 256 MiB would show in the peak of resident memory."""
    if clnorm.select().kind != "cpu":
        pytest.skip("only a CPU works in the host's memory")
    done = python(
        "import numpy, clnorm, resource\n"
        "x = numpy.ones((65536, 1024), 'f4'); y = numpy.ones_like(x)\n"
        "clnorm.layer_norm(x[:1]); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "clnorm.layer_norm(x, out=y)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    assert int(done.stdout) < 64 * 1024, done.stderr  # KiB


def test_memory_does_not_grow():
    x, weight = numpy.ones((2, 64), "f4"), numpy.ones(64, "f4")

    def calls(count):
        for _ in range(count):
            clnorm.rms_norm(x, weight)

    calls(20000)
    before = resident()
    calls(100000)
    assert resident() - before < 2 * 2**20


def resident():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.parametrize(
    "use", ["clnorm.gelu(x)", "clnorm.devices()", "clnorm.select('cpu;gpu')", "clnorm.gelu(on_queue())"]
)
def test_only_a_fork_before_the_first_call_can_call(use):
    if "on_queue" in use:
        pytest.importorskip("pyopencl")
    program = (
        "import os, signal, numpy, clnorm\n"
        "x = numpy.ones((2, 8), 'f4')\n"
        "def on_queue():\n"
        "    import pyopencl.array\n"
        "    device = pyopencl.get_platforms()[0].get_devices()[0]\n"
        "    return pyopencl.array.to_device(pyopencl.CommandQueue(pyopencl.Context([device])), x)\n"
        "def child(use, expected):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        signal.alarm(60)\n"
        "        try:\n"
        "            use()\n"
        "        except clnorm.ClnormError as error:\n"
        "            os._exit(7 if 'forked' in str(error) else 1)\n"
        "        os._exit(0)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == expected\n"
        f"use = lambda: {use}\n"
        "child(use, 0); use()\n"
        "child(lambda: clnorm.gelu(x), 7); child(clnorm.devices, 7); clnorm.gelu(x)\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_the_error_of_a_forked_worker_reaches_its_parent():
    """The error reaches the parent by pickle. An error that cannot be unpickled there would end the pool."""
    x = numpy.ones((2, 8), "f4")
    clnorm.gelu(x)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(clnorm.ClnormError, match="forked") as raised:
            pool.apply_async(clnorm.gelu, (x,)).get(60)
    assert raised.value.status == "UNSUPPORTED"


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "threading.Thread(target=lambda: clnorm.gelu(x)).start()"])
def test_the_interpreter_exits(ending):
    done = python(f"import sys, threading, numpy, clnorm\nx = numpy.ones((9, 9), 'f4'); y = clnorm.gelu(x)\n{ending}")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_without_a_loader_the_error_says_what_to_install():
    program = "import clnorm, numpy\nassert clnorm.devices() == []\nclnorm.gelu(numpy.ones((2, 2), 'f4'))"
    done = python(program, CLNORM_OPENCL="/nowhere/libOpenCL.so.1")
    assert "clnorm[cpu]" in done.stderr and "/nowhere/libOpenCL.so.1" in done.stderr


def test_without_a_driver_the_error_says_what_to_install(tmp_path):
    hidden = {"OCL_ICD_VENDORS": str(tmp_path), "OCL_ICD_FILENAMES": "", "CLNORM_OPENCL": "", "CLNORM_DEVICE": ""}
    done = python("import clnorm; clnorm.select()", **hidden)
    # Beside clnorm[cpu] there may be no other loader.
    assert "no OpenCL" in done.stderr and "Install a driver" in done.stderr and "clnorm[cpu]" in done.stderr


def test_without_ml_dtypes_the_error_says_what_to_install():
    program = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import clnorm, numpy\n"
        "clnorm.quantize(numpy.ones((2, 32), 'f4'))\n"
    )
    assert "NumPy has no float8_e4m3fn of its own: pip install ml_dtypes" in python(program).stderr


@pytest.mark.parametrize("command", [["-m", "clnorm"], ["-m", "clnorm.cl"], ["-c", "import clnorm.cl; clnorm.cl.main()"]])
def test_the_tool_runs(command):
    done = subprocess.run([sys.executable, *command, "devices"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and clnorm.select().name in done.stdout, done.stderr


@pytest.mark.parametrize("loader,path", [
    ("", "/lib/a"), ("libOpenCL.so.1", "/lib/a"), ("/lib/b/libOpenCL.so.1", "/lib/b:/lib/a"),
])
def test_the_tool_finds_libraries_beside_a_loader_that_has_a_folder(loader, path, monkeypatch):
    called = []
    monkeypatch.setenv("CLNORM_OPENCL", loader)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib/a")
    monkeypatch.setattr(os, "execve", lambda program, arguments, environment: called.append(environment))
    __main__.main()
    assert [environment["LD_LIBRARY_PATH"] for environment in called] == [path]


README = pathlib.Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the package lies alone")
def test_the_lines_of_the_readme_run_as_they_are():
    pytest.importorskip("torch")
    program = README.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    done = python(program)
    assert done.returncode == 0 and "1: LayerNorm" in done.stdout, done.stderr
