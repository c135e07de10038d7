"""torch.compile with default options and static shapes. The backward is autograd's, of the compiled forward."""
import torch
import torch._functorch.config

import plain

PACKAGE = "torch"
torch._functorch.config.donated_buffer = False  # the backward runs many times


def compiled(function):
    torch._dynamo.reset()  # after eight shapes it would run a function uncompiled
    return torch.compile(function, dynamic=False, fullgraph=True)


FORWARDS = plain.forwards(plain.written_rms_norm)
OPERATIONS = {
    **{name: lambda case, forward=forward: plain.forward_call(compiled(forward[0]), forward[1], case)
       for name, forward in FORWARDS.items()},
    **{f"{name}_backward": lambda case, forward=FORWARDS[name]: plain.backward_call(compiled(forward[0]), forward[1], case)
       for name in plain.WITH_BACKWARD},
}
