/* The places of rows in a tensor with outer dimensions. A build has OUTER_x=1 where x has two dimensions that do not
 * collapse into one, and OUTER_x=2 for three. Row r begins at element
 *
 *   r · x_stride + ⌊r / x_period⌋ · x_jump + ⌊r / x_period2⌋ · x_jump2
 *
 * without the last term for OUTER_x=1. The arithmetic wraps around, so that a jump may be negative. ROW_T is defined where
 * a tensor of the build has outer dimensions. */
#ifndef OUTER_H
#define OUTER_H

#ifndef OUTER_x
#define OUTER_x 0
#endif
#ifndef OUTER_y
#define OUTER_y 0
#endif
#ifndef OUTER_z
#define OUTER_z 0
#endif
#ifndef OUTER_residual
#define OUTER_residual 0
#endif
#ifndef OUTER_residual_out
#define OUTER_residual_out 0
#endif
#ifndef OUTER_dy
#define OUTER_dy 0
#endif
#ifndef OUTER_dx
#define OUTER_dx 0
#endif
#ifndef OUTER_dz
#define OUTER_dz 0
#endif
#ifndef OUTER_dresidual_out
#define OUTER_dresidual_out 0
#endif
#ifndef OUTER_dresidual
#define OUTER_dresidual 0
#endif
#ifndef OUTER_out
#define OUTER_out 0
#endif

/* Selects a macro by a tensor's number of outer dimensions: BY_OUTER(MACRO_, x)(…) is MACRO_0(…), MACRO_1(…) or
 * MACRO_2(…). */
#define BY_OUTER(macro, tensor) BY_OUTER_JOINED(macro, OUTER_##tensor)
#define BY_OUTER_JOINED(macro, outer) BY_OUTER_EXPANDED(macro, outer)
#define BY_OUTER_EXPANDED(macro, outer) macro##outer

#ifdef ROW_T /* uint where that can count the rows, else ulong, whose divisions take several times as long */
static inline ulong jumped(const ulong row, const ulong period, const ulong jump) {
    return (ulong)((ROW_T)row / (ROW_T)period) * jump;
}
#endif

/* Elements from a tensor's first row to a row. For functions with a parameter call. */
#define ROW_OFFSET(tensor, row) BY_OUTER(ROW_OFFSET_, tensor)(tensor, row)
#define ROW_OFFSET_0(tensor, row) ((row)*call->tensor##_stride)
#define ROW_OFFSET_1(tensor, row) ((row)*call->tensor##_stride + jumped(row, call->tensor##_period, call->tensor##_jump))
#define ROW_OFFSET_2(tensor, row) (ROW_OFFSET_1(tensor, row) + jumped(row, call->tensor##_period2, call->tensor##_jump2))

/* A struct of one row stores offsets that need a division. START_MEMBER declares its members, START initialises them,
 * and START_OF is the offset: from the struct, or from the row where nothing is stored. */
#define START_MEMBER(tensor) BY_OUTER(START_MEMBER_, tensor)(tensor)
#define START_MEMBER_0(tensor)
#define START_MEMBER_1(tensor) ulong tensor##_start;
#define START_MEMBER_2(tensor) START_MEMBER_1(tensor)
#define START(tensor, row) BY_OUTER(START_, tensor)(tensor, row)
#define START_0(tensor, row)
#define START_1(tensor, row) , .tensor##_start = ROW_OFFSET(tensor, row)
#define START_2(tensor, row) START_1(tensor, row)
#define START_OF(tensor, holder, row) BY_OUTER(START_OF_, tensor)(tensor, holder, row)
#define START_OF_0(tensor, holder, row) ((row)*call->tensor##_stride)
#define START_OF_1(tensor, holder, row) (holder)->tensor##_start
#define START_OF_2(tensor, holder, row) START_OF_1(tensor, holder, row)

#endif
