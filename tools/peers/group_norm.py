#!/usr/bin/env python3
"""Times group norm of PyTorch, torch.compile and Liger on images, on an NVIDIA GPU or on the CPU. A measurement is a JSON line.

  python3 tools/peers/group_norm.py > group_norm.json
  python3 tools/peers/group_norm.py --shapes 2x320x128x128,8x640x64x64 --groups 32 --layouts first,last --activations none,silu

Shapes are N x C x H x W, and /G after one, as in clnorm bench, stands for --groups G. --layouts first is [N, C, H, W] in
memory, last [N, H, W, C]. A line has op (group_norm, group_norm_backward; group_norm_silu, group_norm_silu_backward with SiLU
after it), rows = N · groups, cols = C / groups · H · W, shape, groups, layout, and the other keys of `python3 tools/peers`. In
the least traffic, forward reads x and writes y; backward reads x and dy, and writes dx.
"""
import argparse
import sys

import torch
import torch.nn.functional as F

import plain
from case import DTYPES, EPS
from command_line import USUAL_DTYPES, chosen, load, numbers, timer_of, version_of
from measure import Report

PEERS = ("torch", "compile", "liger")
SHAPES = "2x320x128x128,8x640x64x64,32x1280x32x32,1x512x512x512,64x256x56x56"
FORMATS = {"first": torch.contiguous_format, "last": torch.channels_last}
ACTIVATIONS = {"none": lambda y: y, "silu": F.silu}


def image_of(word, groups):
    """(N, C, H, W) and the number of groups of a word of --shapes. Any other word is a ValueError."""
    shape, _, own = word.partition("/")
    if own:
        (groups,) = numbers(own, "/", 1)
    return tuple(numbers(shape, "x", 4)), groups


class Image:
    """x and dy [N, C, H, W] in a layout, weight and bias [C]."""

    def __init__(self, shape, groups, layout, dtype, device):
        def image():
            return torch.randn(shape, device=device).to(DTYPES[dtype]).to(memory_format=FORMATS[layout])

        if shape[1] % groups:
            sys.exit(f"--shapes, --groups: expected a divisor of {shape[1]} channels, not {groups}")
        self.groups, self.channels, self.layout = groups, shape[1], layout
        self.x, self.dy = image(), image()
        self.weight, self.bias = (torch.randn(shape[1], device=device).to(DTYPES[dtype]) for _ in range(2))


def norm_of(image, activation):
    """The forward as a function of x, weight and bias."""
    return lambda x, weight, bias: activation(F.group_norm(x, image.groups, weight, bias, EPS))


TENSORS = ("x", "weight", "bias")


def plain_calls(image, activation, wrap):
    """Calls of a forward in PyTorch. wrap: returns the function to call, compiled or not."""
    function = norm_of(image, activation)
    return {"": lambda: plain.forward_call(wrap(function), TENSORS, image),
            "_backward": lambda: plain.backward_call(wrap(function), TENSORS, image)}


def calls_of(name, module, image, activation):
    """A peer's calls: "" is the forward, "_backward" the backward."""
    if name == "torch":
        return plain_calls(image, ACTIVATIONS[activation], lambda function: function)
    if name == "compile":
        return plain_calls(image, ACTIVATIONS[activation], module.compiled)
    return module.group_norm_calls(image) if activation == "none" and image.layout == "first" else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--shapes", default=SHAPES, metavar="NxCxHxW[/G],…")
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--layouts", default="first,last")
    parser.add_argument("--activations", default="none,silu")
    parser.add_argument("--dtypes", metavar="bf16,…")
    parser.add_argument("--peers", default=",".join(PEERS))
    args = parser.parse_args()
    try:
        images = [image_of(word, args.groups) for word in args.shapes.split(",")]
    except ValueError as error:
        sys.exit(f"--shapes: expected NxCxHxW[/G],…: {error}")
    dtypes = chosen((args.dtypes or USUAL_DTYPES[args.device]).split(","), DTYPES, "dtypes")
    layouts = chosen(args.layouts.split(","), FORMATS, "layouts")
    activations = chosen(args.activations.split(","), ACTIVATIONS, "activations")
    report = Report(timer_of(args.device), sys.stdout)
    peers = load(chosen(args.peers.split(","), PEERS, "peers"))
    for dtype in dtypes:
        for shape, groups in images:
            for layout in layouts:
                image = Image(shape, groups, layout, dtype, args.device)
                size = image.x.numel() * image.x.element_size()
                segments = shape[0] * groups
                for activation in activations:
                    op = "group_norm" if activation == "none" else f"group_norm_{activation}"
                    for name, module in peers.items():
                        for direction, make in calls_of(name, module, image, activation).items():
                            report.measure(name, version_of(module), op + direction,
                                           size * (3 if direction else 2), make, rows=segments,
                                           cols=image.x.numel() // segments, dtype=dtype, shape=list(shape),
                                           groups=groups, layout=layout)


if __name__ == "__main__":
    main()
