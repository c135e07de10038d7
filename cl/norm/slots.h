/* Slots: parts of the workspace that hold the work-groups' sums for dweight and dbias, [weight_rows, slots, SLOT_COLUMNS]
 * each, until a last kernel adds them up. With LOCKED several work-groups share a slot, and each takes its lock once, after
 * all its rows. */
#ifndef SLOTS_H
#define SLOTS_H

#include "common/device_fence.h"
#include "norm/norm_backward_share.h"

/* This work-group's part of a slot. */
struct slot {
    global real *dweight; /* at the group's first column; unused without DWEIGHT */
    global real *dbias;
    uint abreast; /* segments that the work-group has side by side, at most ABREAST */
    ulong step;   /* reals from the sums of one of them to those of the next */
    bool add;     /* another work-group has written the slot before */
    bool aligned; /* wide accesses at their own size's alignment */
};

#if LOCKED

/* The values of a lock. An empty slot was never entered, and its sums are undefined. */
enum slot_state { SLOT_EMPTY, SLOT_ENTERED, SLOT_FILLED };

/* One work-item waits for its whole work-group, so that the others do not keep the lock's holder from running. Every
 * work-item of the work-group must call it. */
INLINED void open_slot(struct slot *slot, volatile global uint *lock, local uint *broadcast) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        uint before = SLOT_ENTERED;
        while (before == SLOT_ENTERED) {
            before = atomic_cmpxchg(lock, SLOT_FILLED, SLOT_ENTERED);
            if (before == SLOT_EMPTY)
                before = atomic_cmpxchg(lock, SLOT_EMPTY, SLOT_ENTERED) == SLOT_EMPTY ? SLOT_EMPTY : SLOT_ENTERED;
        }
        device_fence(); /* after the lock, for the whole work-group by the barrier */
        *broadcast = before == SLOT_FILLED;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    device_fence();
    slot->add = *broadcast;
}

/* Makes every store of the work-group visible to the device before it releases the lock. */
static inline void close_slot(volatile global uint *lock) {
    device_fence();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        device_fence(); /* of the stores of the others, which the barrier has ordered before it */
        atomic_xchg(lock, SLOT_FILLED);
    }
}

/* volatile, so that the load is not answered by this compute unit's cache, which may hold an old value. */
static inline void put_slot1(volatile global real *at, const real value, const struct slot *slot) {
    *at = slot->add ? *at + value : value;
}

static inline void put_slot(global real *base, const index_t v, const uint lead, const realv value,
                            const struct slot *slot) {
    volatile global real *at = base - lead + v * VEC;
    if (slot->aligned && !LEADS && is_whole(v, lead)) {
        volatile global realv *whole = (volatile global realv *)at;
        *whole = slot->add ? *whole + value : value;
        return;
    }
    real element[VEC];
    VSTORE(value, element);
    const struct part part = own_part(v, lead);
    for (uint i = part.from; i < part.to; i++)
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

static inline void put_slot(global real *base, const index_t v, const uint lead, const realv value,
                            const struct slot *slot) {
    STORE_VECTOR(REAL_DTYPE)(base, v, lead, value, slot->aligned && !LEADS);
}

#endif

/* Writes a tile's columns to the slot. Each column is the sum over count lines of local memory for each segment abreast, in
 * a fixed order; those of the segments come in turn. slot_row: at the first segment's first column; tile: its first vector,
 * at the lead of its rows; step: reals from line to line. Every work-item of the work-group calls it, after a barrier. */
INLINED void put_lines(global real *slot_row, const index_t tile, const uint lead, const local real *lines,
                       const uint count, const uint step, const struct slot *slot) {
    const index_t first = tile * VEC, reach = GROUP_SIZE + lead;
    const index_t end = first < reach ? min(reach - first, (index_t)(SPLIT ? TILE : REACH)) : 0;
    const index_t columns = ABREAST == 1 ? end : end * slot->abreast;
    for (index_t i = (uint)get_local_id(0); i < columns; i += GROUP_ITEMS) {
        const index_t segment = ABREAST == 1 ? 0 : i / end, column = ABREAST == 1 ? i : i % end;
        if (LEADS && first + column < lead)
            continue;
        real sum = lines[segment * step + column];
        for (uint line = 1; line < count; line++)
            sum += lines[(line * ABREAST + segment) * step + column];
        put_slot1(slot_row + segment * slot->step - lead + first + column, sum, slot);
    }
}

#endif
