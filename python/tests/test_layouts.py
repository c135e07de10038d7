"""Views of NumPy arrays: strides, alignment, byte order."""

import ml_dtypes
import numpy
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import clnorm

DTYPES = [numpy.float32, numpy.float16, ml_dtypes.bfloat16, numpy.float64]


def test_rows_with_gaps_are_read_and_written_in_place(rng):
    whole = rng.standard_normal((6, 256)).astype("f4")
    before = whole.copy()
    y = clnorm.layer_norm(whole[:, :100], out=whole[:, 128:228])
    assert numpy.shares_memory(y, whole)
    reference.assert_close(y, reference.norm(before[:, :100]), 100)
    numpy.testing.assert_array_equal(whole[:, :128], before[:, :128])
    numpy.testing.assert_array_equal(whole[:, 228:], before[:, 228:])
    for view in (before[:, ::2], before[::-1], before.T, numpy.broadcast_to(before[0], (3, 256)), before.astype(">f4")):
        reference.assert_close(clnorm.layer_norm(view), reference.norm(view), 256)


def test_parts_of_a_packed_array_are_normalised_in_place(rng):
    packed = rng.standard_normal((2, 5, 3, 4, 37)).astype("f4")
    before = packed.copy()
    q, k = packed[:, :, 0], packed[:, :, 1]
    assert clnorm.rms_norm(q, out=q) is q
    clnorm.rms_norm(before[:, :, 1], out=k)
    for part in range(2):
        reference.assert_close(packed[:, :, part], reference.norm(before[:, :, part], layer=False), 37)
    numpy.testing.assert_array_equal(packed[:, :, 2], before[:, :, 2])
    gradients = clnorm.rms_norm_backward(q, before[:, :, 0], out=q)
    dx, _, _ = reference.norm_backward(
        reference.norm(before[:, :, 0], layer=False).reshape(-1, 37), before[:, :, 0].reshape(-1, 37), layer=False)
    reference.assert_close(gradients.dx.reshape(-1, 37), dx, 37)
    with pytest.raises((ValueError, clnorm.ClnormError), match="overlap"):
        clnorm.rms_norm(packed[:, :4, 0], out=packed[:, 1:, 0])


def test_transposed_and_broadcast_views(rng):
    x = rng.standard_normal((2, 4, 5, 16)).astype("f4")
    turned, out = x.transpose(0, 2, 1, 3), numpy.zeros((2, 4, 5, 16), "f4").transpose(0, 2, 1, 3)
    residual = numpy.broadcast_to(rng.standard_normal((1, 5, 1, 16)).astype("f4"), turned.shape)
    assert clnorm.layer_norm(turned, out=out) is out
    reference.assert_close(out, reference.norm(turned), 16)
    sums = clnorm.layer_norm(turned, residual=residual)
    numpy.testing.assert_array_equal(sums.residual_out, turned + residual)
    for name in ("softmax", "gelu", "l2_norm"):
        function = getattr(clnorm, name)
        numpy.testing.assert_array_equal(function(turned), function(turned.copy()))
    with pytest.raises(ValueError, match="out: expected the normalised dimensions innermost and dense"):
        clnorm.layer_norm(x[0, 0], out=numpy.zeros((16, 5), "f4").T)
    with pytest.raises(ValueError, match="out: expected the normalised dimensions innermost"):
        clnorm.layer_norm(x[0, 0], out=numpy.lib.stride_tricks.as_strided(x, (5, 16), (8, 4)))


def test_weight_gradients_need_a_dense_output(rng):
    x, dy, weight, whole = *rng.standard_normal((2, 4, 8)).astype("f4"), numpy.ones(8, "f4"), numpy.zeros((8, 5), "f4")
    with pytest.raises(ValueError, match="out: expected rows that lie one after the other"):
        clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"], out=whole[:, 0])
    assert not whole.any()
    expected = clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"]).dweight
    flat = whole.reshape(-1)[3:11]
    assert clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"], out=flat).dweight is flat
    numpy.testing.assert_array_equal(flat, expected)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3, 5), (0, 4)])
def test_the_other_byte_order(rng, shape):
    x = numpy.asarray(rng.standard_normal(shape), "f4")
    swapped = x.astype(x.dtype.newbyteorder())
    numpy.testing.assert_array_equal(clnorm.gelu(swapped), clnorm.gelu(x))
    if shape:
        weight = numpy.full(shape[-1], 0.75, "f4")
        expected = clnorm.rms_norm(x, weight)
        numpy.testing.assert_array_equal(clnorm.rms_norm(swapped, weight.astype(swapped.dtype)), expected)


def test_a_scale_of_the_other_byte_order(rng):
    q, scale = clnorm.quantize(rng.standard_normal((3, 8)).astype("f4"))
    expected = clnorm.dequantize(q, scale)
    numpy.testing.assert_array_equal(clnorm.dequantize(q, scale.astype(scale.dtype.newbyteorder())), expected)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    lead=st.lists(st.integers(0, 5), max_size=3), columns=st.sampled_from([1, 2, 7, 16, 33, 100, 255]),
    dtype=st.sampled_from([numpy.float32, ml_dtypes.bfloat16]), step=st.sampled_from([1, 2, -1]),
    transposed=st.booleans(), offset=st.integers(0, 3), layer=st.booleans(), seed=st.integers(0, 2**32),
)
def test_any_shape_strides_and_alignment(lead, columns, dtype, step, transposed, offset, layer, seed):
    numbers = numpy.random.default_rng(seed).standard_normal((*lead, columns + offset)).astype(dtype)
    x = numbers[..., offset:][..., ::step] if step != 2 else numpy.repeat(numbers[..., offset:], 2, -1)[..., ::2]
    x = x.swapaxes(0, -2) if transposed and len(lead) > 1 else x
    before = numpy.array(x)
    norm = clnorm.layer_norm if layer else clnorm.rms_norm
    condition = reference.norm_condition(before) if layer else 0.0
    reference.assert_close(norm(x), reference.norm(before, layer=layer), columns, condition)
    numpy.testing.assert_array_equal(x, before)


FUNCTIONS = [
    lambda x, dy: (clnorm.softmax(x), clnorm.softmax_backward(dy, x)),
    lambda x, dy: (clnorm.gelu(x), clnorm.gelu_backward(dy, x, "tanh")),
    lambda x, dy: (clnorm.l2_norm(x), clnorm.l2_norm_backward(dy, x).dx),
    lambda x, dy: clnorm.rms_norm(x, residual=dy, z=x, activation="gelu")[:2],
    lambda x, dy: clnorm.layer_norm_backward(dy, x, x.reshape(-1, x.shape[-1])[0])[:2],
    lambda x, dy: (clnorm.group_norm(x, 1, activation="silu"), clnorm.group_norm_backward(dy, x, 1).dx),
    lambda x, dy: clnorm.quantize(x.astype("f4") if x.dtype == "f8" else x, scaling="row"),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    function=st.sampled_from(FUNCTIONS), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**32),
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=5), columns=st.sampled_from([1, 3, 16, 40, 257]),
    order=st.randoms(use_true_random=False), steps=st.lists(st.sampled_from([1, 1, 2, -1]), min_size=6, max_size=6),
)
def test_a_view_and_its_copy_have_the_same_results(function, dtype, seed, shape, columns, order, steps):
    """For any order of the dimensions, gaps and negative steps, results have the same bits as those of a dense copy."""
    whole = numpy.random.default_rng(seed).standard_normal((2, *[2 * size for size in shape], 2 * columns)).astype(dtype)
    axes = list(range(len(shape)))
    order.shuffle(axes)
    # In half of the examples the columns stay innermost.
    axes.insert(order.randrange(len(axes) + 1) if steps[-1] != 1 else len(axes), len(shape))
    cut = tuple(slice(None, size * abs(step), step) if step > 0 else slice(size - 1, None, -1)
                for size, step in zip((*shape, columns), steps))
    x, dy = (part[cut].transpose(axes) for part in whole)
    for got, expected in zip(function(x, dy), function(x.copy(), dy.copy())):
        numpy.testing.assert_array_equal(numpy.asarray(got, "f8"), numpy.asarray(expected, "f8"))
