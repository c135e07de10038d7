"""Writes docs/python.md from the docstrings of the installed package.

    python document.py            writes it
    python document.py --check    fails where it differs from the docstrings
"""

import inspect
import pathlib
import re
import sys

import clnorm

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "python.md"
HEAD = """# clnorm for Python

Made from the docstrings by `python/document.py`; `help(clnorm.rms_norm)` shows the same.

    cd python && pip install .          # builds the package; its needs are below
    pip install '.[cpu]'                # with Intel's OpenCL for CPUs, for a machine without an OpenCL driver
    python -m clnorm devices            # the tool

The build needs a C compiler and the headers of OpenCL and xxHash (Debian: opencl-headers, libxxhash-dev). pip installs its
other needs for the build: CMake 3.26 where it is missing, cffi, and NumPy's headers.

The wheel contains the library. It opens the system's OpenCL loader, `libOpenCL.so.1`, at the first call;
`CLNORM_OPENCL` names another file.

`examples/python/train_gpt.py` trains a small GPT for 200 steps, with PyTorch's norms and after
`clnorm.torch.replace(model)`. The two loss curves coincide.

![Loss of both runs by step](../examples/python/loss.svg)
"""


def signature(function):
    """The signature as in the source: defaults keep their quotes, annotations that are strings have none."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    return text.replace("typing.", "")


def entry(name, thing):
    doc = inspect.cleandoc(thing.__doc__)
    if inspect.isclass(thing):
        return f"### {name}\n\n```text\n{doc}\n```\n"
    return f"### {name}\n\n```python\n{name}{signature(thing)}\n```\n\n```text\n{doc}\n```\n"


def page(torch):
    parts = [HEAD, "## clnorm\n", f"```text\n{inspect.cleandoc(clnorm.__doc__)}\n```\n"]
    parts += [entry(name, getattr(clnorm, name)) for name in clnorm.__all__]
    parts += ["## clnorm.torch\n", f"```text\n{inspect.cleandoc(torch.__doc__)}\n```\n"]
    parts += [entry(name, getattr(torch, name)) for name in torch.__all__]
    return "\n".join(parts)


def main():
    from clnorm import torch

    text = page(torch)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        sys.exit("docs/python.md differs from the docstrings: run python/document.py")


if __name__ == "__main__":
    main()
