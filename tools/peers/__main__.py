#!/usr/bin/env python3
"""Times the operations of `clnorm bench` in other libraries, on an NVIDIA GPU or on the CPU. A measurement is a JSON line.

  python3 tools/peers > peers.json                                      every operation, peer and usual shape
  python3 tools/peers rms_norm rms_norm_backward --shapes 4096x1024,64x4096 --dtypes bf16,f32 --peers torch,liger
  python3 tools/peers rms_norm --widths 512,640,768 --elements 33554432     rows for this number of elements of x
  python3 tools/peers --device cpu layer_norm --shapes 4096x1024

A line has op, provider, rows, cols, dtype, us, limit_us and gb_s as clnorm bench writes them; tools/benchmark.py --peers puts
them beside ours. limit_us is the time of a copy of the least traffic in this process. On a GPU each time is the median of many
runs by CUDA events, with the L2 cache full of other data. On a CPU each time is the least of many runs, and the copy is memcpy
on one thread. Peers that cannot be imported and cases that they refuse are reported on stderr.
"""
import argparse
import sys

import torch

from case import DTYPES, OPERATIONS, Case
from command_line import USUAL_DTYPES, chosen, load, numbers, timer_of, version_of
from measure import Report

PEERS = {"cuda": ("torch", "compile", "fla", "liger", "quack", "apex", "coat"), "cpu": ("torch", "compile")}
SHAPES = {"cuda": "32768x256,32768x1024,16384x4096,16384x8192,8192x16384,4096x65536,2048x4096,64x4096,1x4096",
          "cpu": "16384x256,8192x768,4096x1024,4096x4096,1024x8192"}


def shapes_of(args):
    try:
        if args.widths:
            return [(max(args.elements // cols, 1), cols) for cols in numbers(args.widths, ",")]
        return [tuple(numbers(word, "x", 2)) for word in (args.shapes or SHAPES[args.device]).split(",")]
    except ValueError as error:
        sys.exit(f"--shapes, --widths: expected ROWSxCOLS,… and COLS,…: {error}")


def main():
    parser = argparse.ArgumentParser(prog="tools/peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", nargs="*", metavar="OP", help="names of clnorm bench (default: all)")
    parser.add_argument("--device", choices=PEERS, default="cuda")
    parser.add_argument("--shapes", metavar="MxN,…")
    parser.add_argument("--widths", metavar="N,…", help="instead of shapes")
    parser.add_argument("--elements", type=int, default=1 << 25, help="elements of x, with --widths")
    parser.add_argument("--dtypes", metavar="bf16,…")
    parser.add_argument("--peers", metavar="NAME,…", help="of torch, compile, fla, liger, quack, apex, coat (default: all)")
    parser.add_argument("--json", metavar="FILE", help="write this file instead of standard output")
    args = parser.parse_args()

    operations = {operation.name: operation for operation in OPERATIONS}
    words = chosen(args.operations, operations, "operations") or list(operations)
    dtypes = chosen((args.dtypes or USUAL_DTYPES[args.device]).split(","), DTYPES, "dtypes")
    names = chosen(args.peers.split(",") if args.peers else PEERS[args.device], PEERS[args.device], "peers")
    shapes = shapes_of(args)
    timer = timer_of(args.device)
    modules = load(names)
    with open(args.json, "w", encoding="utf-8") if args.json else sys.stdout as stream:
        report = Report(timer, stream)
        for dtype in dtypes:
            for rows, cols in shapes:
                case = Case(rows, cols, dtype, args.device)
                for word in dict.fromkeys(words):
                    for name, module in modules.items():
                        make = module.OPERATIONS.get(word)
                        if make:
                            report.measure(name, version_of(module), word, operations[word].bytes(case), lambda: make(case),
                                           rows=rows, cols=cols, dtype=dtype)
                if args.device == "cuda":
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
