/* Cases of `clnorm check`, in the form that check_case_read reads. */
#include "check_case.h"

const char *const check_lines[] = {
    /* Gradients of norms. */
    "layer_norm_backward 5x64 x,dy,weight,bias,mean,rstd=f32",
    "layer_norm_backward 0x64 x,dy,weight,bias,mean,rstd=f32",
    "layer_norm_backward 3x1 x,dy,weight,bias=f32",
    "rms_norm_backward 9x1000 x,dy,weight=bf16",
    "layer_norm_backward 2x65537 x,dy=bf16 weight,bias,mean,rstd=f32",
    "layer_norm_backward 300x33 x,dy,weight,bias=f16 pattern=far",
    "rms_norm_backward 5x320 x,dy,weight=f32 pattern=special",
    "rms_norm_backward 4x96 x,dy,weight,z=f64 group-size=8 gate=silu",
    "layer_norm_backward 9x129 x,dy=bf16 weight,bias=f64",
    "rms_norm_backward 6x64 x,dy=f64 weight=f32 reduction=locked",
    "layer_norm_backward 7x30 x=bf16 dy=f32 weight=f16 bias=bf16 z=f16 group-size=5 gate=sigmoid weight-offset=1"
    " recompute-output",
    "layer_norm_backward 7x129 x,dy,weight=f32 z=bf16 gate=silu gate-first",
    "rms_norm_backward 5x256 x,dy=bf16 weight,rstd=f32 outputs=dx",
    "layer_norm_backward 33x64 x,dy,mean,rstd=f32 outputs=dbias,y",
    "layer_norm_backward 40x129 x,dy=bf16 outputs=dweight reduction=locked",
    "rms_norm_backward 70x33 x,dy=bf16 weight=f32 reduction=locked slots=1",
    "rms_norm_backward 64x96 x,dy=f16 weight,bias=f32 z=f16 group-size=8 gate=silu reduction=locked slots=2",
    "rms_norm_backward 600x128 x,dy,weight=bf16 weight-rows=8",
    "layer_norm_backward 60x129 x,dy,weight=f32 bias=bf16 weight-rows=3 weight-repeat=20",
    "layer_norm_backward 36x96 x,dy=f16 weight,bias=f32 group-size=8 weight-offset=1 weight-rows=4 weight-repeat=3"
    " reduction=locked",
    "rms_norm_backward 12x512 x,dy=bf16 weight=f32 weight-rows=12"
    " config=accumulator=registers,keep=registers,lanes=16,segments=2,vec=4,reduce=tree",
    "layer_norm_backward_from_y 5x1000 y,dy,weight=bf16 bias,rstd=f32 pattern=apart",
    "rms_norm_backward_from_y 40x96 y,dy=f16 weight,rstd=f32 pattern=apart group-size=8 reduction=locked",
    "layer_norm_backward_from_y 2x65537 y,dy,weight,bias,rstd=f32 pattern=apart",

    /* Gradients with forced configs, some of which a device may lack. Even on a large GPU 300 rows are more than the
     * work-groups, so that a work-group takes several. */
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32 config=accumulator=memory,lanes=1,vec=1"
    " reduction=partial slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32 config=accumulator=memory,lanes=64,vec=4,reduce=tree"
    " reduction=partial slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32 config=accumulator=local,lanes=1,vec=16"
    " reduction=locked slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32 config=accumulator=local,lanes=64,vec=4,reduce=tree"
    " reduction=partial slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32"
    " config=accumulator=registers,keep=registers,lanes=8,segments=4,vec=4,reduce=tree reduction=locked slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32"
    " config=accumulator=registers,keep=registers,lanes=64,segments=1,vec=8,reduce=tree,run_length=2 reduction=partial"
    " slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32"
    " config=accumulator=registers,keep=reread,lanes=64,segments=2,vec=4,reduce=tree reduction=partial slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32"
    " config=accumulator=registers,keep=registers,lanes=32,segments=2,reduce=shuffle reduction=locked slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32"
    " config=accumulator=registers,keep=registers,lanes=128,segments=1,reduce=subgroup reduction=partial slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32"
    " config=accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree reduction=locked slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32"
    " config=accumulator=registers,tile=128,lanes=32,segments=1,vec=4,reduce=shuffle,stores=streaming reduction=partial"
    " slots=2",
    "rms_norm_backward 300x512 x,dy=bf16 weight,bias,rstd=f32 config=isa=portable reduction=partial slots=2",
    "layer_norm_backward 300x512 x,dy=bf16 weight,bias,mean,rstd=f32 config=isa=ptx reduction=partial slots=2",

    /* Work that is fused into the norm. */
    "rms_norm 9x1000 x,weight=bf16 residual=f32",
    "layer_norm 7x129 x,weight=f32 residual=bf16 dropout=0.1 seed=42",
    "rms_norm 5x4096 x,weight,z,residual,row_scale=bf16 gate=silu activation=gelu dropout=0.5 seed=42",
    "layer_norm 6x63 x,weight=f16 group-size=21 dropout=0.3 seed=42",
    "layer_norm 9x512 x,weight=f32 residual=f16 pattern=special activation=silu",
    "rms_norm 9x512 x,weight,residual=f32 config=keep=reread,lanes=64,segments=1,vec=4 activation=gelu_tanh dropout=0.2"
    " seed=42",
    "rms_norm 3x96 x,weight,residual=f64 activation=gelu",
    "rms_norm 9x1000 x,weight=bf16 residual=f32 quantize=row",
    "layer_norm 5x300 x,weight=f32 pattern=special dropout=0.2 seed=42 quantize=group quantize-group=64",
    "rms_norm 5x1024 x,weight,z=bf16 gate=silu config=keep=registers,lanes=64,segments=1,vec=8 quantize=group"
    " quantize-group=128",
    "layer_norm 7x96 x,weight=f16 group-size=48 dtype=f8e5m2 quantize=tensor quantize-scale=0.0078",
    "rms_norm 96x128 x,weight=bf16 weight-rows=8",
    "layer_norm 21x129 x,weight=f32 weight-rows=3 weight-repeat=7 activation=silu dropout=0.1 seed=42",
    "rms_norm 6x512 x,weight=f16 weight-rows=6 config=keep=reread,lanes=64,segments=1,vec=4 quantize=row",
    "rms_norm 9x1024 x,weight=bf16 rope_cos,rope_sin,position=f32 group-size=128 rope=neox",
    "rms_norm 33x80 x,weight=f16 rope_cos,rope_sin=f32 rope=neox rope-heads=8",
    "layer_norm 7x288 x,weight=f32 rope_cos,rope_sin=bf16 position=f32 group-size=96 rope=interleaved rope-dims=32",
    "rms_norm 5x512 x,weight,residual=bf16 rope_cos,rope_sin=f32 group-size=256 rope=neox"
    " config=keep=reread,lanes=8,segments=1,vec=8",
    "rms_norm_backward 9x1024 x,weight,dy=bf16 rope_cos,rope_sin,position=f32 group-size=128 rope=neox",
    "layer_norm_backward 21x96 x,weight,dy,rope_cos,rope_sin=f32 group-size=48 rope=interleaved rope-dims=24 rope-heads=3",
    "rms_norm_backward 9x1000 x,weight,dy=bf16 residual=f32",
    "layer_norm_backward 21x512 x,weight,dy,z,residual,row_scale=bf16 dresidual_out=f32 gate=silu activation=gelu"
    " dropout=0.4 seed=42",
    "layer_norm_backward 21x129 x,weight,dy,dresidual_out=f32 activation=silu dropout=0.1 seed=42 s-given",
    "rms_norm_backward 5x512 x,weight,dy=f32 residual=f16"
    " config=accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree activation=gelu_tanh dropout=0.2 seed=42",

    /* Group and instance norm: samples, channels, positions. */
    "group_norm 2x64x49 x,weight,bias=f32 dtype=f32 activation=silu groups=8 layout=first",
    "group_norm 2x64x49 x,weight,bias=f32 dtype=f32 activation=silu groups=8 layout=last",
    "group_norm 1x1x1 x=f16 dtype=f32 groups=1 layout=first",
    "group_norm 3x3x7 x,weight,bias=f16 dtype=f16 groups=1 layout=last",
    "group_norm 2x320x256 x,weight,bias,residual=bf16 dtype=bf16 activation=silu groups=32 layout=first",
    "group_norm 2x320x256 x,weight,bias,residual=bf16 dtype=bf16 activation=gelu groups=32 layout=last",
    "group_norm 1x8x40000 x,weight,bias=f32 pattern=far dtype=bf16 groups=2 layout=first",
    "group_norm 1x8x40000 x,weight,bias=f32 pattern=far dtype=f16 groups=2 layout=last",
    "group_norm 2x32x96 x,weight,bias=f64 dtype=f64 activation=gelu_tanh groups=4 layout=first",
    "group_norm 0x8x4 x,weight,bias=f32 dtype=f32 groups=2 layout=first",
    "group_norm 3x16x64 x,weight,bias=f32 dtype=f32 config=vec=4,lanes=16,segments=2 groups=4 layout=first",
    "group_norm 3x16x64 x,weight,bias=f32 dtype=f32 config=vec=4,lanes=8,segments=2,chunks=12 groups=4 layout=first",
    "group_norm 3x48x100 x,weight,bias=f32 dtype=f32 config=vec=4,lanes=8,segments=4,chunks=7 groups=4 layout=last",
    "group_norm 3x48x100 x,weight,bias=bf16 dtype=bf16 config=isa=portable groups=4 layout=last",
    "group_norm 3x64x49 x,weight,bias=f32 dtype=f32 config=vec=4,lanes=64,chunks=1 groups=4 layout=last",
    "instance_norm 3x17x33 x,weight,bias=bf16 dtype=f32 layout=first",
    "instance_norm 3x17x33 x,weight,bias=bf16 dtype=f32 layout=last",
    "group_norm_backward 2x64x49 x,dy,weight,bias=f32 dtype=f32 activation=silu groups=8 layout=first",
    "group_norm_backward 2x64x49 x,dy,weight,bias=f32 dtype=f32 activation=silu groups=8 layout=last",
    "group_norm_backward 2x320x256 x,dy,weight,bias=bf16 dtype=bf16 groups=32 layout=first",
    "group_norm_backward 2x320x256 x,dy,weight,bias=bf16 dtype=bf16 activation=gelu groups=32 layout=last",
    "group_norm_backward 1x8x40000 x,dy,weight,bias=f32 dtype=f32 groups=2 layout=first",
    "group_norm_backward 2x32x96 x,dy,weight,bias=f64 dtype=f64 activation=gelu_tanh groups=4 layout=first",
    "group_norm_backward 3x16x64 x,dy=f32 dtype=f32 config=vec=4,lanes=16,segments=2 groups=4 layout=first",
    "group_norm_backward 3x16x64 x,dy,weight,bias=f16 dtype=f32 config=vec=4,lanes=8,segments=2,chunks=12 groups=4"
    " layout=first",
    "group_norm_backward 3x48x100 x,dy,weight,bias=f32 dtype=f32 config=vec=4,lanes=8,segments=4,chunks=7 groups=4"
    " layout=last",
    "instance_norm_backward 3x17x33 x,dy,weight,bias=bf16 dtype=f32 layout=first",
    "group_norm 2x64x49 x,weight,bias=f32 activation=silu quantize=tensor groups=8 layout=first",
    "group_norm 3x320x256 x,weight,bias,residual=bf16 dtype=f8e5m2 quantize=row groups=32 layout=last",
    "group_norm 1x8x40000 x=f8e4m3 x_scale,weight,bias=f32 x-scaling=tensor quantize=tensor quantize-scale=0.02 groups=2"
    " layout=first",
    "instance_norm 3x17x33 x=f8e5m2 x_scale,weight,bias=bf16 x-scaling=row dtype=bf16 layout=last",
    "group_norm 4x16x64 x=f32 pattern=special config=isa=portable quantize=row groups=4 layout=first",
    "group_norm_backward 2x64x49 x=f8e4m3 x_scale,dy,weight,bias=f32 dresidual_out=bf16 x-scaling=row activation=silu"
    " groups=8 layout=first",
    "group_norm_backward 3x48x100 x,dy,weight,bias=bf16 dresidual_out=f32 groups=4 layout=last",

    /* One launch whose work-groups hold pieces and exchange numbers: those that wait for each other, which CPUs lack, and
     * those that compute every number themselves. */
    "group_norm 5x16x1024 x,weight,bias=f32 dtype=f32 activation=silu"
    " config=vec=4,lanes=128,segments=1,chunks=4,row_split=exchange groups=1 layout=first",
    "group_norm 5x64x512 x,weight,bias=f32 dtype=f32 activation=silu"
    " config=vec=4,lanes=128,segments=1,chunks=4,row_split=exchange groups=4 layout=last",
    "group_norm 5x16x64 x,weight,bias=f32 pattern=far dtype=f32"
    " config=vec=2,lanes=16,segments=1,chunks=8,row_split=no_wait groups=2 layout=first",
    "group_norm 3x64x32 x,weight,bias=bf16 pattern=far dtype=bf16"
    " config=vec=4,lanes=16,segments=1,chunks=8,row_split=no_wait groups=2 layout=last",
    "group_norm_backward 5x16x1024 x,dy,weight,bias=f32 dtype=f32 activation=silu"
    " config=vec=4,lanes=128,segments=1,chunks=8,row_split=exchange groups=1 layout=first",
    "group_norm_backward 5x64x512 x,dy,weight,bias=f32 dtype=f32 activation=silu"
    " config=vec=4,lanes=128,segments=1,chunks=4,row_split=exchange groups=4 layout=last",
    "group_norm_backward 3x12x64 x,dy,weight,bias=f32 dtype=f32 activation=gelu"
    " config=vec=2,lanes=16,segments=1,chunks=3,row_split=no_wait groups=2 layout=first",
    "group_norm_backward 3x64x32 x,dy,weight,bias=f32 dtype=f32"
    " config=vec=4,lanes=16,segments=1,chunks=8,row_split=no_wait groups=2 layout=last",
    "softmax 300x40000 x=f32 config=vec=4,lanes=128,segments=1,chunks=10,row_split=exchange",
    "softmax 9x1001 x=bf16 pattern=special config=vec=4,lanes=16,segments=1,chunks=5,row_split=no_wait",
    "softmax_backward 300x40000 y,dy=f32 config=vec=4,lanes=128,segments=1,chunks=20,row_split=exchange",
    "softmax_backward 9x1001 y,dy=f32 config=vec=4,lanes=16,segments=1,chunks=8,row_split=no_wait",

    /* Quantisation, and norms of 8-bit tensors. */
    "quantize 70x144 x=f32 transpose",
    "quantize 5x33 x=bf16 pattern=special dtype=f8e5m2",
    "quantize 9x96 x=f16 mode=row scale-dtype=bf16",
    "quantize 6x100 x=bf16 pattern=special group-size=32 mode=group transpose",
    "quantize 6x64 x=f32 config=isa=portable stochastic=7",
    "quantize 6x64 x=f32 config=isa=ptx",
    "dequantize 6x200 q=f8e4m3 scale=f32",
    "dequantize 3x31 q=f8e5m2 scale=bf16 dtype=bf16",
    "fp8_rms_norm 70x1024 x=f8e4m3 x_scale,weight=bf16 group-size=16",
    "fp8_rms_norm 5x384 x=f8e5m2 x_scale,weight=f32 group-size=128 accuracy=compatible",
    "fp8_rms_norm 9x160 x=f8e4m3 x_scale,weight=f32 pattern=special group-size=32 config=isa=portable",
    "fp8_rms_norm_backward 20x1024 x=f8e4m3 x_scale,weight=bf16 rstd=f32 dy=bf16 group-size=16",
    "fp8_rms_norm_backward 40x192 x=f8e5m2 x_scale,weight,rstd,dy=f32 group-size=64 reduction=locked",
    "layer_norm 70x384 x,weight=bf16 outputs=y_t,mean,rstd quantize=tensor",
    "layer_norm 5x200 x=f8e4m3 x_scale,weight=f32 x-scaling=tensor quantize=row",
    "rms_norm 9x256 x=f8e4m3 x_scale,weight,z=bf16 residual=f32 x-scaling=group x-scale-group=32 gate=silu",
    "rms_norm 6x130 x=f8e5m2 x_scale=f32 z=f16 x-scaling=row gate=sigmoid config=isa=portable outputs=y_t quantize=group"
    " quantize-group=16",
    "layer_norm_backward 40x200 x=f8e4m3 x_scale,weight,dy=f32 x-scaling=tensor",
    "layer_norm_backward 9x130 x=f8e5m2 x_scale=f32 weight,dy=f16 residual=f32 x-scaling=row config=isa=portable",
    "rms_norm_backward 20x384 x=f8e4m3 x_scale,weight=bf16 rstd=f32 dy,z=bf16 x-scaling=group x-scale-group=32 gate=silu",

    /* Rows with outer dimensions: parts of packed tensors, views, expanded inputs. All have 30 rows, in the order of
     * a [2, 5, 3]. */
    "rms_norm 30x64 x,weight=bf16 outer=x=10:576,3:64;y=10:576,3:64",
    "layer_norm 30x129 x,weight,bias,residual=f32"
    " outer=x=2:1935,5:129,3:645;residual=2:0,15:129;y=2:4000,5:700,3:200;residual_out=30:131",
    "layer_norm 30x96 x,weight=f16 config=keep=registers,lanes=32,segments=2 outer=x=30:0;y=2:1440,5:96,3:480",
    "rms_norm 30x1000 x=f32 config=keep=reread,lanes=64,segments=1,vec=4 outer=x=2:15000,5:1000,3:5000;y=10:9000,3:1000",
    "rms_norm 30x37 x=f64 pattern=special outer=x=10:333,3:37",
    "layer_norm_backward 30x64 x,dy,weight,bias=f32 outer=x=10:576,3:64;dy=2:960,5:64,3:320;dx=10:576,3:64",
    "rms_norm_backward 30x1000 x,dy,weight,residual=bf16"
    " outer=x=2:15000,5:1000,3:5000;dy=30:0;residual=2:0,15:1000;dx=2:30100,5:6000,3:2000;dresidual=10:9000,3:1000",
    "rms_norm_backward 30x512 x,dy,weight=f32 config=accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree"
    " outer=x=10:4608,3:512;dy=2:7680,5:512,3:2560;dx=2:7680,5:512,3:2560",
    "layer_norm_backward 30x129 x,dy,weight=f16 config=accumulator=columns"
    " outer=x=10:1161,3:129;dy=10:1161,3:129;dx=10:1161,3:129",
    "l2_norm 30x64 x=bf16 weight=f32 weight-rows=3 weight-repeat=5",
    "l2_norm_backward 30x65 x,dy,weight=f32 weight-rows=5",
    "l2_norm 30x64 x=bf16 outer=x=10:576,3:64;y=2:960,5:64,3:320",
    "l2_norm_backward 30x129 x,dy,weight=f32 outer=x=10:1161,3:129;dy=30:0;dx=2:1935,5:129,3:645",
    "softmax 30x1000 x=f32 outer=x=10:9000,3:1000;y=2:15000,5:1000,3:5000",
    "softmax_backward 30x129 y,dy=f32 outer=y=10:1161,3:129;dx=2:1935,5:129,3:645",
    "gelu 30x37 x=bf16 outer=x=10:333,3:37;y=2:555,5:37,3:185",
    "gelu_backward 30x129 x,dy=f16 outer=x=2:0,15:129;dx=10:1161,3:129",
    NULL,
};
