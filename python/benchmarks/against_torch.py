"""Milliseconds of norms, and of group norm with SiLU, in PyTorch on the CPU and in clnorm.torch, forward and backward, in
one run on the same tensors. A copy of as many bytes shows the speed of memory: forward reads x and writes y, backward reads
x and dy and writes dx.

    python benchmarks/against_torch.py [SECONDS_PER_CELL]

All are measured in turns, each for a few calls at a time, so that other load on the machine slows down all of them. The
median of all calls counts. OMP_WAIT_POLICY=passive, set for all, keeps PyTorch's threads from spinning while OpenCL's work.
"""

import os
import statistics
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import clnorm  # noqa: E402
import clnorm.torch as ct  # noqa: E402

SHAPES = [(8192, 768), (4096, 1024), (1024, 8192)]
IMAGES = [(8, 320, 32, 32), (2, 64, 128, 128)]
GROUPS = 32
DTYPES = [torch.float32, torch.bfloat16]
NORMS = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, w.shape, w, b), lambda x, w, b: ct.layer_norm(x, w.shape, w, b)),
    "rms_norm": (lambda x, w, b: F.rms_norm(x, w.shape, w, 1e-5), lambda x, w, b: ct.rms_norm(x, w.shape, w, 1e-5)),
}
GROUP_NORMS = (lambda x, w, b: F.silu(F.group_norm(x, GROUPS, w, b)),
               lambda x, w, b: ct.group_norm(x, GROUPS, w, b, activation="silu"))


def in_turns(functions, seconds):
    """The median milliseconds of each of the functions."""
    times = [[] for _ in functions]
    for function in functions:
        function()
        function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 9:
        for function, measured in zip(functions, times):
            for _ in range(3):
                start = time.perf_counter()
                function()
                measured.append(time.perf_counter() - start)
    return [statistics.median(measured) * 1e3 for measured in times]


def forward_of(norm, x, w, b):
    def run():
        with torch.no_grad():
            norm(x, w, b)

    return run


def backward_of(norm, x, w, b):
    inputs = [t.detach().clone().requires_grad_() for t in (x, w, b)]
    y = norm(*inputs)
    dy = torch.randn_like(y)
    wanted = inputs[:2] if norm in NORMS["rms_norm"] else inputs  # RMS norm has no bias
    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)


def copy_of(x, tensors):
    """PyTorch's copy, on its threads, of as many bytes read and written as `tensors` tensors like x have."""
    target, source = torch.ones(2, x.nbytes * tensors // 8)  # of float32, and each byte counts twice
    return lambda: target.copy_(source)


def print_rows(name, norms, x, shape, seconds):
    """A row for each direction. x: the input, whose channels are its second dimension, or columns of a matrix."""
    w, b = torch.randn(2, x.shape[1], dtype=x.dtype)
    for direction, measured, tensors in (("forward", forward_of, 2), ("backward", backward_of, 3)):
        functions = [measured(norm, x, w, b) for norm in norms] + [copy_of(x, tensors)]
        theirs, ours, copy = in_turns(functions, seconds)
        print(f"| {name} {direction} | {shape} | {str(x.dtype)[6:]} | {theirs:.2f} | {ours:.2f} | {copy:.2f} | "
              f"{theirs / ours:.2f} |", flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    print(f"{clnorm.select()}, {torch.get_num_threads()} threads, PyTorch {torch.__version__}")
    print("| operation | shape | dtype | PyTorch ms | clnorm ms | copy ms | times as fast |\n"
          "|---|---|---|---|---|---|---|")
    for name, norms in NORMS.items():
        for rows, cols in SHAPES:
            for dtype in DTYPES:
                print_rows(name, norms, torch.randn(rows, cols, dtype=dtype), f"{rows}×{cols}", seconds)
    for shape in IMAGES:
        for layout, memory_format in (("first", torch.contiguous_format), ("last", torch.channels_last)):
            for dtype in DTYPES:
                x = torch.randn(shape, dtype=dtype).contiguous(memory_format=memory_format)
                print_rows("group_norm + silu", GROUP_NORMS, x, f"{list(shape)} {layout}", seconds)


if __name__ == "__main__":
    main()
