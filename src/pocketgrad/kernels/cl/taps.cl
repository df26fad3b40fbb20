// How convolutions read their input: stands before conv.cl and conv_grad_weight.cl.
//
// x is dense [n, c, H, W]. Output (oh, ow) reads, for tap (r, s), row H0 + oh*SH + r*DR and column
// W0 + ow*SW + s*DS; what lies outside the plane is zero and never read. Lanes are VW positions q
// that follow each other on a line of LINE positions; there are LINES lines:
//
//   FLAT 0   a line is an output row: oh is the line, ow is q                    any stride
//   FLAT 1   the whole plane is one line with rows W apart: oh = q / W, ow = q % W; a vector runs
//            on into the next row, so small images fill long vectors            SH = SW = 1, OW <= W
//
// Where VW does not divide LINE, the last vector begins at LINE-VW; a line shorter than a vector is
// its first lanes, the others are nobody's.
//
// H W      input plane          OH OW   output plane          XSIZE   elements of x
// R S      taps                 SH SW   strides               DR DS   steps of taps, may be negative
// H0 W0    row and column of tap 0 for output 0; negative by the padding
// PADDED   1 if any tap lies outside the plane                TX      storage of x: float or half
// VW       lanes: 1 2 4 8 16, less than two LINEs             (default 1; CPU: fills the line best)

#define V VEC(float, VW)
#define VI VEC(int, VW)
#define LINES (FLAT ? 1 : OH)
#define LINE (FLAT ? (OH - 1) * W + OW : OW)
#define VECTORS ((LINE + VW - 1) / VW)
#define START(vector) (LINE % VW == 0 ? (vector) * VW : max(0, min((vector) * VW, LINE - VW)))
#define LANES_USED min(VW, LINE)

// Output row and column of the lanes from position q of a line on.
#define LANE_ROW(line, q) (FLAT ? ((q) + LANE_NUMBERS(VW)) / (VI)(W) : (VI)(line))
#define LANE_COL(q) (FLAT ? ((q) + LANE_NUMBERS(VW)) % (VI)(W) : (q) + LANE_NUMBERS(VW))
// The same for the next vector of the line, without dividing.
#define ADVANCE(rows, cols)                                                             \
    if (FLAT) {                                                                         \
        cols += (VI)(VW % W);                                                           \
        rows += (VI)(VW / W);                                                           \
        const VI over = cols >= (VI)(W);                                                \
        cols = select(cols, cols - (VI)(W), over);                                      \
        rows = select(rows, rows + (VI)(1), over);                                      \
    } else {                                                                            \
        cols += (VI)(VW);                                                               \
    }
// Element of a plane of x that tap (0, 0) reads for the first lane.
#define ORIGIN(line, q) ((H0 + (FLAT ? 0 : (line) * SH)) * W + W0 + (q) * SW)

#define BELOW(v, limit) (CAT(as_, VEC(uint, VW))(v) < (VEC(uint, VW))(limit))
#define LINE_READS(line, r) (!PADDED || FLAT || (uint)(H0 + (line) * SH + (r) * DR) < H)
// Lanes whose tap lies in the plane, from the rows and columns that tap (0, 0) reads.
#define LANES_READ(rows, cols, r, s)                                                    \
    (FLAT ? BELOW((rows) + (r) * DR, H) & BELOW((cols) + (s) * DS, W) : BELOW((cols) + (s) * DS, W))

// Whether the vectors from elements low to high of x on, at any tap, end inside x. Only the edges of
// the first and last plane are outside; there lanes are read one by one. Single lanes are guarded.
#define EXTENT(taps, step) (((taps) - 1) * (step))
#define FIRST_TAP (min(EXTENT(R, DR), 0) * W + min(EXTENT(S, DS), 0))
#define LAST_TAP (max(EXTENT(R, DR), 0) * W + max(EXTENT(S, DS), 0))
#define SAFE(low, high)                                                                 \
    (VW == 1 || (SW == 1 && !PADDED && LINE >= VW) ||                                                 \
     (SW <= 2 && (low) + FIRST_TAP >= 0 && (high) + LAST_TAP + SW * VW <= XSIZE))

// v = the lanes of a tap from element `at` of x on; lanes not in ok are zero. If it is SAFE:
#if VW == 1
#define FETCH(v, at, ok) v = !PADDED || (ok) ? LOAD(TX, 1, AT(x) + (at)) : 0.0f;
#elif SW == 1 && !PADDED
#define FETCH(v, at, ok) v = LOAD(TX, VW, AT(x) + (at));
#elif SW == 1
#define FETCH(v, at, ok) v = select((V)(0.0f), LOAD(TX, VW, AT(x) + (at)), ok);
#else
#define FETCH(v, at, ok)                                                                \
    {                                                                                   \
        const V a = LOAD(TX, VW, AT(x) + (at)), b = LOAD(TX, VW, AT(x) + (at) + VW);    \
        v = EVEN(VW, a, b);                                                             \
        if (PADDED) v = select((V)(0.0f), v, ok);                                       \
    }
#endif
// Anywhere:
#define FETCH_LANES(v, at, ok)                                                          \
    {                                                                                   \
        float lane[VW];                                                                 \
        int reads[VW];                                                                  \
        STORE(float, VW, ok, reads);                                                    \
        for (int l = 0; l < VW; l++)                                                    \
            lane[l] = l < LANES_USED && (!PADDED || reads[l]) ? LOAD(TX, 1, AT(x) + (at) + l * SW) : 0.0f;  \
        v = LOAD(float, VW, lane);                                                      \
    }

// Every second lane of two vectors.
#define EVEN_1(a, b) (a)
#define EVEN_2(a, b) (float2)((a).even, (b).even)
#define EVEN_4(a, b) (float4)((a).even, (b).even)
#define EVEN_8(a, b) (float8)((a).even, (b).even)
#define EVEN_16(a, b) (float16)((a).even, (b).even)
#define EVEN(n, a, b) CAT(EVEN_, n)(a, b)
