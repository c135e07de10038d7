/* A kernel's arguments, written once. NAME_args.h lists the parameters of a kernel, for the device and for the host,
 * which makes its table of them from the same lines (src/plan/stage.h). A list is a macro with a line for each parameter
 *
 *     USE(kind, condition, type, name)
 *
 *     kind        MATRIX: a pointer, name_at, the offset of its first element, and name_stride, elements from row to row
 *                 ROWS:   the same, and where the rows have outer dimensions two numbers for each of them (outer.h)
 *                 VECTOR: a MATRIX without a stride
 *                 NUMBER: an ulong or a real
 *                 SEED:   two numbers, name and name_offset
 *                 LAUNCH: the number of a launch, an ulong (message.h)
 *     condition   the build's macro that is 0 or none where the kernel does not have the parameter, or 1. Each parameter
 *                 adds to the cost of a launch
 *
 * in the order of the parameters. The first parameter of every kernel is work, which is 0 where a launch has nothing to
 * do. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "common/outer.h"
#include "common/vector.h"

/* kernel void name(PARAMETERS(LIST)) */
#define PARAMETERS(list) const ulong work list(PARAMETER)
#define PARAMETER(kind, condition, type, name) JOIN(PARAMETER_IF_, PRESENT(condition))(kind, type, name)
#define PARAMETER_IF_0(kind, type, name)
#define PARAMETER_IF_1(kind, type, name) PARAMETER_##kind(type, name)
#define PARAMETER_MATRIX(type, name) , type name, const ulong name##_at, const ulong name##_stride
#define PARAMETER_ROWS(type, name) PARAMETER_MATRIX(type, name) BY_OUTER(PARAMETER_OUTER_, name)(name)
#define PARAMETER_OUTER_0(name)
#define PARAMETER_OUTER_1(name) , const ulong name##_period, const ulong name##_jump
#define PARAMETER_OUTER_2(name) PARAMETER_OUTER_1(name), const ulong name##_period2, const ulong name##_jump2
#define PARAMETER_VECTOR(type, name) , type name, const ulong name##_at
#define PARAMETER_NUMBER(type, name) , const type name
#define PARAMETER_LAUNCH(type, name) , const type name
#define PARAMETER_SEED(type, name) , const type name, const type name##_offset

/* The members of a struct that holds the arguments. Offsets are added to the pointers. A parameter that the kernel does
 * not have is a member too. */
#define MEMBERS(list) \
    ulong work;       \
    list(MEMBER)
#define MEMBER(kind, condition, type, name) MEMBER_##kind(type, name)
#define MEMBER_MATRIX(type, name) \
    type name;                    \
    ulong name##_stride;
#define MEMBER_ROWS(type, name) MEMBER_MATRIX(type, name) BY_OUTER(MEMBER_OUTER_, name)(name)
#define MEMBER_OUTER_0(name)
#define MEMBER_OUTER_1(name) ulong name##_period, name##_jump;
#define MEMBER_OUTER_2(name) MEMBER_OUTER_1(name) ulong name##_period2, name##_jump2;
#define MEMBER_VECTOR(type, name) type name;
#define MEMBER_NUMBER(type, name) type name;
#define MEMBER_LAUNCH(type, name) type name;
#define MEMBER_SEED(type, name) type name, name##_offset;

/* The initialiser of such a struct in a kernel: {ARGUMENTS(LIST), .more = …}. Members that the kernel does not have are
 * 0. */
#define ARGUMENTS(list) .work = work list(ARGUMENT)
#define ARGUMENT(kind, condition, type, name) JOIN(ARGUMENT_IF_, PRESENT(condition))(kind, name)
#define ARGUMENT_IF_0(kind, name)
#define ARGUMENT_IF_1(kind, name) ARGUMENT_##kind(name)
#define ARGUMENT_MATRIX(name) , .name = name + name##_at, .name##_stride = name##_stride
#define ARGUMENT_ROWS(name) ARGUMENT_MATRIX(name) BY_OUTER(ARGUMENT_OUTER_, name)(name)
#define ARGUMENT_OUTER_0(name)
#define ARGUMENT_OUTER_1(name) , .name##_period = name##_period, .name##_jump = name##_jump
#define ARGUMENT_OUTER_2(name) ARGUMENT_OUTER_1(name), .name##_period2 = name##_period2, .name##_jump2 = name##_jump2
#define ARGUMENT_VECTOR(name) , .name = name + name##_at
#define ARGUMENT_NUMBER(name) , .name = name
#define ARGUMENT_LAUNCH(name) , .name = name
#define ARGUMENT_SEED(name) , .name = name, .name##_offset = name##_offset

#endif
