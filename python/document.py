"""Writes docs/python.md from the docstrings of the installed package.

    python document.py            writes it
    python document.py --check    fails where it differs from the docstrings
"""

import inspect
import pathlib
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
    """The signature as in the source: annotations that are strings lose their quotes, defaults keep theirs."""
    whole = inspect.signature(function)
    bare = [parameter.replace(annotation=bare_annotation(parameter.annotation))
            for parameter in whole.parameters.values()]
    text = str(whole.replace(parameters=bare, return_annotation=bare_annotation(whole.return_annotation)))
    return text.replace("typing.", "")


class Bare:
    """An annotation that prints as its text."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def bare_annotation(annotation):
    return Bare(annotation) if isinstance(annotation, str) else annotation


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
