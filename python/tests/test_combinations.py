"""Random combinations of fused operations, layouts and dtypes, compared with PyTorch's gradients in double.

CLNORM_RANDOM_SECONDS (8) is how long each test tries new ones, CLNORM_RANDOM_SEED (1) the first seed. A failure prints its
seed, and what it called."""

import math
import os
import time

import ml_dtypes
import numpy
import pytest

torch = pytest.importorskip("torch")

import clnorm  # noqa: E402

SECONDS, SEED = float(os.environ.get("CLNORM_RANDOM_SECONDS", 8)), int(os.environ.get("CLNORM_RANDOM_SEED", 1))
DTYPES = (numpy.float32, numpy.float16, ml_dtypes.bfloat16, numpy.float64)
ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53}
ACTIVATIONS = {
    None: lambda n: n, "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda n: torch.nn.functional.gelu(n, approximate="tanh"),
}
GATES = {"silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}


def assert_close(name, got, double, single):
    """The error is within the rounding of the result and 20 times the error of PyTorch's arithmetic in float; for float64,
    2^-29 of that."""
    got, double, single = (numpy.asarray(array, "f8").reshape(-1) for array in (got, double, single))
    rounding = ROUNDING[name[1]]
    arithmetic = 2.0**-46 if name[1] == "float64" else 2.0**-20
    lost = 20 * numpy.abs(single - double).max(initial=0) * (2.0**-29 if name[1] == "float64" else 1)
    allowed = 1.01 * rounding * numpy.abs(double) + 2.0**-25 * (name[1] == "float16") + lost
    allowed += arithmetic * numpy.abs(double).max(initial=1)
    wrong = ~(numpy.abs(got - double) <= allowed)
    assert not wrong.any(), (name[0], wrong.sum(), got[wrong][:3], double[wrong][:3])


def tensors_of(arrays, dtype):
    return {name: torch.tensor(numpy.asarray(array, "f8")).to(dtype).requires_grad_() for name, array in arrays.items()}


def check(arrays, run, results, gradients, cotangents):
    """results, gradients: those of clnorm, by name. run: from tensors by name to results by name; `y`, and `s` where it is
    present, are differentiated with the cotangents."""
    expected = []
    for dtype in (torch.float64, torch.float32):
        inputs = tensors_of(arrays, dtype)
        outputs = run(inputs)
        seeds = {name: torch.tensor(numpy.asarray(of, "f8")).to(dtype) for name, of in cotangents.items()}
        sum((outputs[name] * of).sum() for name, of in seeds.items()).backward()
        both = {name: outputs[name].detach() for name in results}
        both |= {"d" + name: torch.zeros_like(of) if of.grad is None else of.grad for name, of in inputs.items()}
        expected.append({name: of.double().numpy() for name, of in both.items()})
    for name, got in {**results, **gradients}.items():
        assert_close((name, got.dtype.name), got, expected[0][name], expected[1][name])


def view(rng, shape, dtype, expand=False):
    """Random numbers of (samples, tokens, heads, columns) in one of the layouts of models."""
    samples, tokens, heads, columns = shape
    kind = rng.choice(["dense", "packed", "swapped", "gap"] + ["expanded"] * expand)
    numbers = lambda *sizes: (rng.standard_normal(sizes) * 2 + 1).astype(dtype)
    if kind == "packed":
        return numbers(samples, tokens, 3, heads, columns)[:, :, rng.integers(3)]
    if kind == "swapped":
        return numbers(samples, heads, tokens, columns).swapaxes(1, 2)
    if kind == "expanded":
        return numpy.broadcast_to(numbers(samples, 1, heads, columns), shape)
    return numbers(samples, tokens, heads, columns + 5)[..., 2:-3] if kind == "gap" else numbers(*shape)


def norm_of(t, columns, options, layer):
    """The norm in PyTorch, by the formulas of clnorm.layer_norm's docstring."""
    rows = math.prod(t["x"].shape[:-1])
    x, z, residual = (t[name].reshape(rows, columns) if name in t else None for name in ("x", "z", "residual"))
    gate = GATES[options.get("gate", "silu")]
    s = x * gate(z) if options.get("gate_first") else x
    s = s + residual if residual is not None else s
    segments = s.reshape(rows, -1, options.get("group_size") or columns)
    centred = segments - segments.mean(-1, keepdim=True) if layer else segments
    n = (centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + options["eps"])).reshape(rows, columns)
    row = torch.arange(rows) // options.get("weight_repeat", 1)
    pick = lambda of: of[row % of.shape[0]] if of.ndim == 2 else of
    n = n * (pick(t["weight"]) + options.get("weight_offset", 0)) if "weight" in t else n
    n = n + pick(t["bias"]) if "bias" in t else n
    y = ACTIVATIONS[options.get("activation")](n)
    return {"y": y * gate(z) if z is not None and not options.get("gate_first") else y, "s": s}


def rotated(y, rope, width, rows):
    cos, sin, position, style = (rope.cos, rope.sin, rope.position, rope.style)
    index = numpy.arange(rows) // rope.repeat if position is None else numpy.repeat(position, rows // position.size)
    cos, sin = (torch.tensor(table[index].astype("f8")).to(y.dtype)[:, None] for table in (cos, sin))
    pairs, v = cos.shape[-1], y.reshape(rows, -1, width)
    a, b = (v[..., :pairs], v[..., pairs:2 * pairs]) if style == "neox" else (v[..., 0:2 * pairs:2], v[..., 1:2 * pairs:2])
    turned = (a * cos - b * sin, b * cos + a * sin)
    turned = torch.cat(turned, -1) if style == "neox" else torch.stack(turned, -1).flatten(-2)
    return torch.cat([turned, v[..., 2 * pairs:]], -1).reshape(y.shape)


def random_norm(rng, dtype):
    columns = int(rng.choice([2, 7, 31, 33, 64, 80, 96, 128, 1001]))
    shape = (*(int(size) for size in rng.integers(1, 6, 3)), columns)
    rows, maybe = math.prod(shape[:-1]), lambda p: rng.random() < p
    arrays, options = {"x": view(rng, shape, dtype, True)}, {"eps": float(rng.choice([1e-5, 1e-2]))}
    divisors = [size for size in range(2, columns + 1) if columns % size == 0]
    width = options["group_size"] = int(rng.choice(divisors)) if maybe(0.4) else columns
    rope = None
    if maybe(0.4) and width > 1:
        pairs, repeat = int(rng.integers(1, width // 2 + 1)), int(rng.choice([1, shape[2]]))
        angle = rng.uniform(-3, 3, (rows + 1, pairs))
        table = numpy.float64 if dtype is numpy.float64 else numpy.float32
        position = rng.integers(0, rows + 1, shape[:2]).astype("i4") if maybe(0.5) else None
        rope = clnorm.Rope(numpy.cos(angle).astype(table), numpy.sin(angle).astype(table), position,
                           str(rng.choice(["neox", "interleaved"])), 1 if position is not None else repeat)
    elif maybe(0.4):
        options["activation"] = str(rng.choice(["silu", "gelu", "gelu_tanh"]))
    if maybe(0.4):
        options |= {"gate": str(rng.choice(["silu", "sigmoid"])), "gate_first": rope is not None or maybe(0.5)}
        arrays["z"] = view(rng, shape, dtype)
    if maybe(0.4) and not options.get("gate_first"):
        arrays["residual"] = view(rng, shape, dtype, True)
    if maybe(0.4):
        options["weight_repeat"] = int(rng.choice([size for size in range(1, rows + 1) if rows % size == 0]))
    shared = rows // options["weight_repeat"] if "weight_repeat" in options else 0
    for name in ("weight", "bias"):
        if shared or maybe(0.7):
            arrays[name] = rng.uniform(0.5, 1.5, (shared, columns) if shared else columns).astype(dtype)
    if "weight" in arrays and maybe(0.4):
        options["weight_offset"] = 1.0
    return arrays, options, rope


def one_norm(seed):
    rng = numpy.random.default_rng(seed)
    dtype, layer = DTYPES[rng.integers(4)], rng.random() < 0.5
    arrays, options, rope = random_norm(rng, dtype)
    x, name = arrays["x"], "layer_norm" if layer else "rms_norm"
    what = {key: (of.shape, of.strides, of.dtype.name) for key, of in arrays.items()}, options, rope and rope[2:]
    forward, backward = getattr(clnorm, name), getattr(clnorm, name + "_backward")
    out = forward(**arrays, **options, rope=rope)
    results = {"y": out.y, "s": out.residual_out} if "residual" in arrays else {"y": out}
    dy, more = view(rng, x.shape, dtype, True), {}
    if "residual" in arrays:
        more["dresidual_out"] = view(rng, x.shape, dtype, True)
    made = backward(dy, **arrays, **options, **more, rope=rope)
    gradients = {key: of for key, of in made._asdict().items() if of is not None}
    assert set(gradients) >= {"d" + key for key in arrays if key != "bias"}, gradients.keys()
    cotangents = {"y": dy.reshape(-1, x.shape[-1])}
    if more:
        cotangents["s"] = more["dresidual_out"].reshape(-1, x.shape[-1])

    def run(t):
        got = norm_of(t, x.shape[-1], options, layer)
        rows = math.prod(x.shape[:-1])
        return got if rope is None else got | {"y": rotated(got["y"], rope, options["group_size"], rows)}

    return what, (arrays, run, results, gradients, cotangents)


def one_group_norm(seed):
    rng = numpy.random.default_rng(seed)
    dtype, last = DTYPES[rng.integers(4)], bool(rng.integers(2))
    channels = int(rng.choice([1, 3, 6, 7, 32, 33, 96]))
    spatial = [int(size) for size in rng.choice([1, 2, 5, 16, 33], rng.integers(0, 4))] + [2] * (channels == 1)
    most = channels if math.prod(spatial) > 1 else channels - 1  # groups of one element have only rounding errors
    groups = int(rng.choice([size for size in range(1, most + 1) if channels % size == 0]))
    shape = (int(rng.integers(1, 4)), *spatial, channels) if last else (int(rng.integers(1, 4)), channels, *spatial)
    numbers = lambda *sizes: (rng.standard_normal(sizes) + 1).astype(dtype)
    arrays = {"x": numbers(*shape)}
    arrays |= {name: numbers(channels) for name in ("weight", "bias") if rng.random() < 0.7}
    options = {"eps": 1e-3, "activation": [None, "silu", "gelu"][rng.integers(3)], "channels_last": last}
    dy = numbers(*shape)
    y = clnorm.group_norm(num_groups=groups, **arrays, **options)
    made = clnorm.group_norm_backward(dy, num_groups=groups, **arrays, **options)

    def run(t):
        x = t["x"].movedim(-1, 1) if last else t["x"]
        of_groups = x.reshape(len(x), groups, -1)  # torch's group_norm refuses groups of one element
        centred = of_groups - of_groups.mean(-1, keepdim=True)
        n = (centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-3)).reshape(x.shape).movedim(1, -1)
        n = n * t["weight"] if "weight" in t else n
        n = (n + t["bias"] if "bias" in t else n).movedim(-1, 1)
        return {"y": ACTIVATIONS[options["activation"]](n.movedim(1, -1) if last else n)}

    gradients = {key: of for key, of in made._asdict().items() if of is not None}
    what = shape, groups, dtype.__name__, options, list(arrays)
    return what, (arrays, run, {"y": y}, gradients, {"y": dy})


@pytest.mark.parametrize("make", [one_norm, one_group_norm])
def test_random_combinations(make):
    end, seed, checked = time.monotonic() + SECONDS, SEED, 0
    while seed == SEED or time.monotonic() < end:
        what = ()
        try:
            what, case = make(seed)
            check(*case)
            checked += 1
        except clnorm.ClnormError as error:
            if "has no double precision" not in str(error):
                raise
        except Exception as error:
            raise AssertionError(f"CLNORM_RANDOM_SEED={seed}: {what}: {error}") from error
        seed += 1
    assert checked
