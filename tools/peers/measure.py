"""Times, the copy that they are compared with, and JSON lines."""
import ctypes
import datetime
import json
import statistics
import sys
import time

import torch

MEASURED_US = 60e3  # duration of the runs of one call on a GPU
LEAST_RUNS, MOST_RUNS = 20, 300


class CudaTimer:
    """The median by CUDA events, with other data in the L2 cache before each run."""

    def __init__(self):
        self.device = torch.cuda.get_device_name()
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        self.other = torch.empty(max(4 * cache, 256 << 20), dtype=torch.uint8, device="cuda")

    def runs(self, call, count):
        """The times of count runs in microseconds."""
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for begin, end in events:
            self.other.zero_()
            begin.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events]

    def us(self, call):
        call()  # the first call may compile and tune
        once = min(self.runs(call, 3))
        return statistics.median(self.runs(call, int(min(max(MEASURED_US / once, LEAST_RUNS), MOST_RUNS))))

    def copy_us(self, size):
        """The time of a copy that reads half of size bytes and writes the other half."""
        source, target = (torch.ones(max(size // 2, 1), dtype=torch.uint8, device="cuda") for _ in range(2))
        return self.us(lambda: target.copy_(source))


class CpuTimer:
    """The least time of many runs on a CPU, as in clnorm bench."""

    def __init__(self):
        self.device = f"CPU, {torch.get_num_threads()} threads"

    def us(self, call):
        call()
        times = []
        end = time.perf_counter() + 1
        while len(times) < LEAST_RUNS or (time.perf_counter() < end and len(times) < MOST_RUNS):
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e6)
        return min(times)

    def copy_us(self, size):
        """The time of memcpy on one thread, size // 2 bytes."""
        source, target = (torch.ones(max(size // 2, 1), dtype=torch.uint8) for _ in range(2))
        return self.us(lambda: ctypes.memmove(target.data_ptr(), source.data_ptr(), source.numel()))


def note(text):
    """Prints a line for people on stderr; benchmark.py skips lines that begin with #."""
    print("# " + " ".join(text.split())[:240], file=sys.stderr, flush=True)


class Report:
    """Writes a JSON line for each measurement."""

    def __init__(self, timer, stream):
        self.timer = timer
        self.stream = stream
        self.copies = {}  # times by bytes

    def measure(self, peer, version, op, size, make, **shape):
        """Times the call that make() returns. size: bytes of the least traffic. A call that fails is noted and left out."""
        try:
            us = self.timer.us(make())
        except Exception as error:  # a peer may refuse in any way
            words = ", ".join(str(value) for value in shape.values())
            note(f"{op}, {peer}, {words}: {type(error).__name__}: {error}")
            if isinstance(self.timer, CudaTimer):
                torch.cuda.synchronize()  # raises where the failure broke the device: later results would be wrong
            return
        if size not in self.copies:
            self.copies[size] = self.timer.copy_us(size)
        row = {"op": op, "provider": peer, **shape, "us": round(us, 2), "limit_us": round(self.copies[size], 2),
               "gb_s": round(size / us / 1e3, 1), "device": self.timer.device, "version": version,
               "date": datetime.date.today().isoformat()}
        print(json.dumps(row), file=self.stream, flush=True)
