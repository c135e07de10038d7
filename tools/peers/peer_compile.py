"""torch.compile with its usual options, for the very shapes. Backward is what autograd has of the compiled forward."""
import torch
import torch._functorch.config

import plain

PACKAGE = "torch"
torch._functorch.config.donated_buffer = False  # a gradient is taken many times


def compiled(function):
    torch._dynamo.reset()  # past eight shapes of one function it would run it uncompiled
    return torch.compile(function, dynamic=False, fullgraph=True)


FORWARDS = plain.forwards(plain.written_rms_norm)
OPERATIONS = {
    **{name: lambda case, of=of: plain.forward_call(compiled(of[0]), of[1], case) for name, of in FORWARDS.items()},
    **{f"{name}_backward": lambda case, of=FORWARDS[name]: plain.backward_call(compiled(of[0]), of[1], case)
       for name in plain.WITH_BACKWARD},
}
