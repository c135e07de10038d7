/* Slots: rows of the workspace that hold work-groups' sums for dweight and dbias, [slots, COLS] each, until a last kernel
 * adds them up. With LOCKED several work-groups share a slot, and each takes its lock once, after all its rows. */
#ifndef SLOTS_H
#define SLOTS_H

#include "norm/norm_backward.h"

/* This work-group's part of a slot. */
struct slot {
    global real *dweight; /* of the group's first column; unused without DWEIGHT */
    global real *dbias;
    bool add;     /* another work-group has been here */
    bool aligned; /* wide accesses at their own size's alignment */
};

#if LOCKED

/* Orders a work-item's accesses before it and after it, for every work-item of the device. A barrier does that, by the
 * specification, for a work-group only. */
static inline void device_fence(void) {
#if ISA == ISA_PTX
    __asm__ volatile("membar.gl;" ::: "memory");
#else
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
#endif
}

/* What a lock is. A slot that was never entered holds nothing yet. */
enum slot_state { SLOT_EMPTY, SLOT_ENTERED, SLOT_FILLED };

/* One work-item waits for all, so that none of them keeps the holder from running; every work-item of the work-group calls
 * this. */
INLINED void open_slot(struct slot *slot, volatile global uint *lock, local uint *broadcast) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        uint before = SLOT_ENTERED;
        while (before == SLOT_ENTERED) {
            before = atomic_cmpxchg(lock, SLOT_FILLED, SLOT_ENTERED);
            if (before == SLOT_EMPTY)
                before = atomic_cmpxchg(lock, SLOT_EMPTY, SLOT_ENTERED) == SLOT_EMPTY ? SLOT_EMPTY : SLOT_ENTERED;
        }
        *broadcast = before == SLOT_FILLED;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    device_fence();
    slot->add = *broadcast;
}

/* Every store of the work-group is with the device before the lock is open again. */
static inline void close_slot(volatile global uint *lock) {
    device_fence();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        atomic_xchg(lock, SLOT_FILLED);
}

/* Volatile, so that no cache of this compute unit's answers for another's. */
static inline void put_slot1(volatile global real *at, const real value, const struct slot *slot) {
    *at = slot->add ? *at + value : value;
}

static inline void put_slot(global real *base, const index_t v, const realv value, const struct slot *slot) {
    volatile global real *at = base + v * VEC;
    if (slot->aligned && (TAIL == 0 || v < WHOLE_VECTORS)) {
        volatile global realv *whole = (volatile global realv *)at;
        *whole = slot->add ? *whole + value : value;
        return;
    }
    real element[VEC];
    VSTORE(value, element);
    for (uint i = 0; i < VEC; i++)
        if (v * VEC + i < GROUP_SIZE)
            put_slot1(at + i, element[i], slot);
}

#else

INLINED void open_slot(struct slot *slot, volatile global uint *lock, local uint *broadcast) {
    (void)slot, (void)lock, (void)broadcast;
}

static inline void close_slot(volatile global uint *lock) {
    (void)lock;
}

static inline void put_slot1(global real *at, const real value, const struct slot *slot) {
    *at = value;
    (void)slot;
}

static inline void put_slot(global real *base, const index_t v, const realv value, const struct slot *slot) {
    STORE_VECTOR(REAL_DTYPE)(base, v, value, slot->aligned);
}

#endif

/* Puts a tile's columns, each the sum of its place in several lines of local memory, in their order. slot_row: of the
 * segment's first column; tile: its first vector; step: reals from line to line. Every work-item of the work-group calls
 * it, after a barrier. */
INLINED void put_lines(global real *slot_row, const index_t tile, const local real *lines, const uint count,
                       const uint step, const struct slot *slot) {
    const index_t first = tile * VEC;
    const index_t end = GROUP_SIZE - first < TILE ? GROUP_SIZE - first : TILE;
    for (index_t i = (uint)get_local_id(0); i < end; i += GROUP_ITEMS) {
        real sum = lines[i];
        for (uint line = 1; line < count; line++)
            sum += lines[line * step + i];
        put_slot1(slot_row + first + i, sum, slot);
    }
}

#endif
