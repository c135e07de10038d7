"""Functions that the programs of this folder share, on words of the command line, peers, and the device."""
import importlib
import importlib.metadata
import sys

import torch

from measure import CpuTimer, CudaTimer, note

USUAL_DTYPES = {"cuda": "bf16,f32", "cpu": "f32"}


def numbers(text, separator, count=None):
    """Integers of 1 and more; any other word is a ValueError."""
    found = [int(word) for word in text.split(separator)]
    if any(number < 1 for number in found) or (count and len(found) != count):
        raise ValueError(text)
    return found


def chosen(words, known, what):
    """The words. Exits where one is not known."""
    for word in words:
        if word not in known:
            sys.exit(f"'{word}': expected {what} of {', '.join(known)}")
    return words


def load(names):
    """The modules of peers that can be imported, by name."""
    modules = {}
    for name in names:
        try:
            modules[name] = importlib.import_module(f"peer_{name}")
        except Exception as error:  # a library may fail to load in any way
            note(f"{name}: left out: {type(error).__name__}: {error}")
    return modules


def version_of(module):
    try:
        return f"{module.PACKAGE} {importlib.metadata.version(module.PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{module.PACKAGE}, unknown version"


def timer_of(device):
    if device == "cpu":
        return CpuTimer()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no NVIDIA GPU; --device cpu measures on the CPU")
    return CudaTimer()
