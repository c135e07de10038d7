"""Devices, the selected device, and the errors of the library."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import re
import sys
import threading

_STARTED = False  # whether OpenCL has run in this process
_FORKED = False  # whether it had run in the process that this one was forked from


class ClnormError(RuntimeError):
    """A call of the C library failed. `status` is its name, such as "DEVICE_NOT_FOUND" or "BUILD_FAILED"."""

    def __init__(self, message: str, status: str):
        super().__init__(message)
        self.status = status

    def __reduce__(self):  # an error of a worker process reaches the parent by pickle
        return type(self), (str(self), self.status)


def _choose_opencl() -> None:
    """Selects Intel's OpenCL for CPUs, which `pip install clnorm[cpu]` brings, where the system has no OpenCL driver."""
    folder = pathlib.Path(sys.prefix) / "lib"
    driver, loader = folder / "libintelocl.so", folder / "libOpenCL.so.1"
    if not driver.exists() or not loader.exists() or any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        return
    told = {"CLNORM_OPENCL", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"} & os.environ.keys()
    if told and os.environ.get("CLNORM_OPENCL") != str(loader):  # a parent process may have set this one
        return
    # This loader needs these libraries and has no path to them. The dynamic linker finds those that are loaded already.
    for name in ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"):
        if (folder / name).exists():
            ctypes.CDLL(str(folder / name))
    os.environ["CLNORM_OPENCL"] = str(loader)
    os.environ["OCL_ICD_FILENAMES"] = str(driver)


_choose_opencl()

from clnorm import _repeated_calls  # noqa: E402
from clnorm._native import ffi, lib  # noqa: E402 - reads the environment that was just set


def _text(characters) -> str:
    return ffi.string(characters).decode("utf-8", "replace")


def status_name(status: int) -> str:
    return ffi.typeof("clnorm_status").elements[status].removeprefix("CLNORM_")


_INSTALL = (
    "Install a driver of the device with an OpenCL loader (Debian: pocl-opencl-icd ocl-icd-libopencl1), or "
    "`pip install 'clnorm[cpu]'`"
)


def _count_devices() -> int:
    count = ffi.new("size_t *")
    return count[0] if lib.clnorm_device_list(ffi.NULL, 0, count) == 0 else 0


def check(status: int, words=str) -> None:
    """Raises the error of a clnorm_status that is not CLNORM_SUCCESS, or of a negative OpenCL code. words: translates the
    library's text into the caller's terms."""
    if status == 0:
        return
    if status < 0:
        raise ClnormError(f"OpenCL error {status}", "OPENCL_ERROR")
    detail = _text(lib.clnorm_error_detail()) or _text(lib.clnorm_status_text(status))
    detail = words(re.sub(r"\b(desc|args)\.", "", detail))  # the structs of C whose members are the arguments
    name = status_name(status)
    if name == "OUT_OF_HOST_MEMORY":
        raise MemoryError(detail)
    if name.startswith("INVALID_"):
        raise ValueError(detail)
    if name == "DEVICE_NOT_FOUND" and _text(lib.cln_loader_failure()):
        reason = _text(lib.cln_loader_failure())
        detail = f"no OpenCL loader: {reason}. {_INSTALL}, or name the loader's file in CLNORM_OPENCL"
    elif name == "DEVICE_NOT_FOUND" and not _count_devices():
        detail = f"{detail}. {_INSTALL}"
    raise ClnormError(detail, name)


def _forked() -> None:
    global _FORKED
    _FORKED = _STARTED or _FORKED
    _repeated_calls.use_host(0)


def start() -> None:
    """Has to precede calls of OpenCL. Raises an error in a process that was forked after OpenCL was started."""
    global _STARTED
    if _FORKED:
        raise ClnormError(
            "this process was forked from one that had used clnorm, and OpenCL's threads are gone: start it with "
            "multiprocessing.get_context('spawn'), or use clnorm only after the fork",
            "UNSUPPORTED",
        )
    _STARTED = True


class Device:
    """An OpenCL device. `clnorm.devices()` lists them and `clnorm.select()` chooses one.

    name, vendor, driver, platform: text.  kind: "gpu", "accelerator", "cpu" or "other".
    memory, cache: bytes.  compute_units: a number.  fp16, fp64: whether it has such arithmetic.
    int_ptr: its cl_device_id, for `pyopencl.Device.from_int_ptr`.
    """

    _hosts: dict = {}  # by int_ptr
    _lock = threading.Lock()

    def __init__(self, info):
        self.name = _text(info.name)
        self.vendor = _text(info.vendor)
        self.driver = _text(info.driver)
        self.platform = _text(info.platform_name)
        self.kind = {1: "gpu", 2: "accelerator", 3: "cpu"}.get(info.kind, "other")
        self.index = f"{info.platform_index}:{info.device_index}"
        self.uuid = _text(info.uuid)
        self.memory, self.cache = info.global_memory, info.cache_size
        self.compute_units = info.compute_units
        self.fp16, self.fp64 = info.fp16, info.fp64
        self.int_ptr = int(ffi.cast("uintptr_t", info.device))

    def __repr__(self) -> str:
        return f"<clnorm.Device {self.index} {self.kind} {self.name!r}>"

    def __eq__(self, other) -> bool:
        return isinstance(other, Device) and self.int_ptr == other.int_ptr

    def __hash__(self) -> int:
        return hash(self.int_ptr)

    def __reduce__(self):  # int_ptr has a meaning in this process alone
        return _find_again, (self.uuid, self.index, self.platform, self.name)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo) -> Device:
        return self

    @functools.cached_property
    def host(self):
        """The context and queues of the C side. They are made once in a process and never destroyed: at exit the driver
        may be gone before them."""
        with Device._lock:
            if self.int_ptr not in Device._hosts:
                made = ffi.new("cln_host **")
                check(lib.cln_host_create(ffi.cast("cl_device_id", self.int_ptr), made))
                Device._hosts[self.int_ptr] = made[0]
            return Device._hosts[self.int_ptr]


def devices() -> list[Device]:
    """All OpenCL devices: GPUs, then accelerators, then CPUs. [] where there is no OpenCL."""
    start()
    count = ffi.new("size_t *")
    check(lib.clnorm_device_list(ffi.NULL, 0, count))
    ids = ffi.new("cl_device_id[]", count[0])
    check(lib.clnorm_device_list(ids, count[0], count))
    return [Device(_describe(ids[i])) for i in range(min(len(ids), count[0]))]


def _find_again(uuid: str, index: str, platform: str, name: str) -> Device:
    """The device of this process that a pickled one stands for: by its uuid, or its index where drivers have none."""
    for device in devices():
        known = device.uuid == uuid if uuid else device.index == index
        if known and (device.platform, device.name) == (platform, name):
            return device
    known_as = f"uuid {uuid}" if uuid else f"index {index}"
    raise ClnormError(f"no OpenCL device of this process is the pickled one, {name!r} of {platform!r}, {known_as}",
                      "DEVICE_NOT_FOUND")


def _describe(device):
    info = _new_info()
    check(lib.clnorm_device_describe(device, info))
    return info


def _new_info():
    info = ffi.new("clnorm_device_info *")
    lib.clnorm_device_info_init(info)
    return info


_selected: Device | None = None
_selecting = threading.Lock()


def select(selector: str | Device | None = None) -> Device:
    """Chooses the device for NumPy arrays, torch tensors and DLPack's CPU tensors from now on, in all threads.

    selector: a `Device`; or text as the tool takes it: alternatives separated by ';', each a list of terms separated by ','
        that must all hold: gpu, cpu, accelerator, 0:1 (platform and device), uuid:…, name=TEXT, vendor=TEXT, platform=TEXT,
        memory>=8G, fp16, fp64, subgroups. "gpu;cpu" is a GPU, or a CPU where there is no GPU.
        None or "": the selector in CLNORM_DEVICE; without one a CPU, whose arrays need no copy, else a GPU or accelerator.
    Returns the device. Raises ClnormError where none matches.
    """
    if isinstance(selector, Device):
        return _use(selector)
    if not isinstance(selector, (str, type(None))):
        raise TypeError(f"selector: expected text, a Device or None, got {selector!r}")
    if not selector and not os.environ.get("CLNORM_DEVICE"):
        selector = "cpu;gpu;accelerator"
    try:
        text = (selector or "").encode()
    except UnicodeEncodeError:
        text = b"\0"
    if b"\0" in text:
        raise ValueError(f"selector: expected text of Unicode without NULs, got {selector!r}")
    start()
    info = _new_info()
    check(lib.clnorm_device_select(text, info))
    return _use(Device(info))


def _use(device: Device) -> Device:
    global _selected
    with _selecting:
        _selected = device
        _repeated_calls.use_host(0)
    return device


def selected_host():
    """The host of the selected device. Repeated calls use it from now on."""
    if _FORKED:
        start()
    device = _selected or select()
    host = device.host
    with _selecting:
        if device is _selected:
            _repeated_calls.use_host(int(ffi.cast("uintptr_t", host)))
    return host


os.register_at_fork(after_in_child=_forked)
