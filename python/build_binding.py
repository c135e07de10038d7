"""Writes the C source of the extension module clnorm._native: cffi's binding of the public headers and of native/host.h.

build_binding.py INCLUDE OUTPUT     INCLUDE: the folder with clnorm/clnorm.h
"""

import pathlib
import re
import sys

import cffi

OPENCL_TYPES = """
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
"""


def declarations(header):
    """A header without comments, directives and the parts for C++."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return text.replace("CLNORM_API ", "")


def headers_in_order(folder):
    """The names of the headers, each after those that it includes."""
    ordered = []

    def visit(name):
        if name in ordered:
            return
        text = (folder / name).read_text()
        for included in re.findall(r'#include "(clnorm/\w+\.h)"', text):
            visit(included)
        ordered.append(name)

    visit("clnorm/clnorm.h")
    return ordered


def main():
    include, output = pathlib.Path(sys.argv[1]), sys.argv[2]
    native = pathlib.Path(__file__).parent / "native"
    texts = [declarations((include / name).read_text()) for name in headers_in_order(include)]
    texts += [declarations((native / name).read_text()) for name in ("opencl_loader.h", "host.h")]
    builder = cffi.FFI()
    builder.cdef(OPENCL_TYPES + "\n".join(texts))
    builder.set_source("clnorm._native", '#include "host.h"', py_limited_api=True)
    builder.emit_c_code(output)


main()
