#!/usr/bin/env python3
"""Builds Apex's FastLayerNorm, the module that peer_apex imports, for some widths. All widths take most of an hour.

  git clone https://github.com/NVIDIA/apex
  python3 tools/peers/build_apex.py apex build-apex 1024,4096,8192,16384,65536
  PYTHONPATH=build-apex python3 tools/peers layer_norm layer_norm_backward --peers apex
"""
import os
import re
import shutil
import sys

from torch.utils.cpp_extension import load

SOURCES = ("ln_api.cpp", "ln_fwd_cuda_kernel.cu", "ln_bwd_semi_cuda_kernel.cu")
LAUNCHER = re.compile(r"^REGISTER_(?:FWD|BWD)_LAUNCHER\(\s*(\d+),.*\n", re.MULTILINE)
HALVES = ["-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_BFLOAT16_OPERATORS__",
          "-U__CUDA_NO_BFLOAT16_CONVERSIONS__", "-U__CUDA_NO_BFLOAT162_OPERATORS__", "-U__CUDA_NO_BFLOAT162_CONVERSIONS__"]


def keep_widths(path, widths):
    """Keeps only the launchers of these widths in a source."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    missing = widths - {int(width) for width in LAUNCHER.findall(text)}
    if missing:
        sys.exit(f"{path}: expected widths that it has, not {sorted(missing)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(LAUNCHER.sub(lambda found: found[0] if int(found[1]) in widths else "", text))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    checkout, build, widths = sys.argv[1], sys.argv[2], {int(word) for word in sys.argv[3].split(",")}
    sources = os.path.join(build, "sources")
    shutil.copytree(os.path.join(checkout, "apex/contrib/csrc/layer_norm"), sources, dirs_exist_ok=True)
    for name in SOURCES[1:]:
        keep_widths(os.path.join(sources, name), widths)
    load("fast_layer_norm", [os.path.join(sources, name) for name in SOURCES], build_directory=build,
         extra_cflags=["-O3", "-include", "functional"], extra_include_paths=[sources],
         extra_cuda_cflags=["-O3", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda", *HALVES])
    print(f"{build}: fast_layer_norm for {', '.join(map(str, sorted(widths)))} columns")


if __name__ == "__main__":
    main()
