#include "reference/rope.h"

#include <math.h>

struct ref_turn ref_rope_turn(const struct ref_rope *rope, uint64_t row, uint64_t column) {
    struct ref_turn turn = {.partner = column, .cos = 1, .sin = 0};
    if (!rope->form || column >= rope->dims)
        return turn;
    const bool neox = rope->form == CLNORM_ROPE_NEOX;
    const uint64_t half = rope->dims / 2;
    const uint64_t pair = neox ? column % half : column / 2;
    const bool first = neox ? column < half : column % 2 == 0;
    const uint64_t second_column = neox ? pair + half : 2 * pair + 1;
    turn.partner = first ? second_column : second_column - (neox ? half : 1);
    const uint64_t index = row / rope->repeat;
    const int64_t position = rope->position ? rope->position[index] : (int64_t)index;
    if (position < 0 || (uint64_t)position >= rope->positions) {
        turn.cos = turn.sin = NAN;
        return turn;
    }
    turn.cos = ref_at(&rope->cos, (uint64_t)position, pair);
    turn.sin = (first ? -1 : 1) * ref_at(&rope->sin, (uint64_t)position, pair);
    return turn;
}
