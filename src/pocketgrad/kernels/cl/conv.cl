// Convolution: y[n, k, p] = sum over c, r, s of w[k, c, r, s] * x[n, c, row(oh, r), column(ow, s)].
//
// How x is read, and what lanes are: taps.cl. Channels form G groups of CG inputs and KG outputs.
//   x  [n, g, c, H, W] dense
//   w  element (g, k, c, r, s) is at W_0 + g*W_G + k*W_K + c*W_C + r*W_R + s*W_S
//   y  [n, g, k, PLANE] dense; output (oh, ow) is element p = Y_0 + oh*Y_R + ow*Y_C of its plane
// The strides of w and y let the gradient for the input be the same kernel: channels exchanged, taps
// backwards, and for a stride one launch per phase that writes every SH-th row, SW-th column.
//
// An item computes KB channels by TW vectors of VW positions, for BLK such blocks one after another:
//
//              x: one vector load per vector and tap, zero where it lies outside
//                 [ x0: VW ][ x1: VW ]   TW = 2
//   w: one    w0  [ acc    ][ acc    ]
//   scalar    w1  [ acc    ][ acc    ]   neighbouring items have neighbouring positions
//   per       w2  [ acc    ][ acc    ]
//   channel   KB = 3
//
// Any sizes; channels past KG are computed as KG-1 and not stored. No taps (R = 0) give zeros.
//
// N G KG CG   batch, groups, channels of y and x in a group      TX TT TY  storage: float or half
// KB TW       channels and vectors of an item                    (default 8 and 2; GPU 8 and 1)
// BLK         blocks of an item                                  (default 1; more for cheap ones)
// WGS         items of a work-group                              (default 1; GPU 64)
// INDEX       int, or long where a tensor has 2^31 elements
// FINISH(LW, n, k, p, v)  store v, the LW results from position p on of channel k (over all groups)
// RUNS     STORE_RUN(w) for the vectors in which parts of rows are stored, the longest first; or nothing
// OUTPUTS  the buffers behind the operands: y, or those of an epilogue

#define KT ((KG + KB - 1) / KB)
#define ACROSS ((VECTORS + TW - 1) / TW)
#define BLOCKS (LINES * ACROSS)
#define CHUNKS ((BLOCKS + BLK - 1) / BLK)
#define CHANNEL(i) (KG % KB == 0 ? k0 + (i) : min(k0 + (i), KG - 1))
// Lanes of a vector are neighbours in y.
#define JOINED (Y_C == 1 && LINE >= VW && (!FLAT || (OW == W && Y_R == W)))
// Store the LW neighbours of a row from lane l on, if there are so many.
#define STORE_RUN(LW)                                                                   \
    if (LW <= VW && run >= LW) {                                                        \
        FINISH(LW, n, k, at, LOAD(float, LW, lane + l))                                 \
        l += LW;                                                                        \
        continue;                                                                       \
    }

#ifndef FINISH
#define FINISH(LW, n, k, p, v) STORE(TY, LW, v, AT(y) + ((n) * (INDEX)(G * KG) + (k)) * PLANE + (p));
#endif

#if R * S <= 9
#define UNROLL_R _Pragma("unroll")
#else
#define UNROLL_R
#endif
// Add the taps of channel c to all sums.
#define ADD_TAPS(ROWS, COLS, GET)                                                       \
    {                                                                                   \
        ROWS for (int r = 0; r < R; r++) {                                              \
            if (!LINE_READS(line, r)) continue;                                         \
            COLS for (int s = 0; s < S; s++) {                                          \
                V xv[TW];                                                               \
                _Pragma("unroll") for (int j = 0; j < TW; j++) {                        \
                    const INDEX at = plane + origin[j] + r * DR * W + s * DS;           \
                    GET(xv[j], at, LANES_READ(rows[j], cols[j], r, s))                  \
                }                                                                       \
                _Pragma("unroll") for (int i = 0; i < KB; i++) {                        \
                    const V wv = (V)(LOAD(TT, 1, wp[i] + c * W_C + r * W_R + s * W_S)); \
                    _Pragma("unroll") for (int j = 0; j < TW; j++)                      \
                        acc[i][j] = fma(wv, xv[j], acc[i][j]);                          \
                }                                                                       \
            }                                                                           \
        }                                                                               \
    }

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TT, w), OUTPUTS) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)N * G * KT * CHUNKS) return;
    const int chunk = item % CHUNKS, k0 = item / CHUNKS % KT * KB;
    const int g = item / CHUNKS / KT % G;
    const INDEX n = item / CHUNKS / KT / G;
    global const TT* wp[KB];
#pragma unroll
    for (int i = 0; i < KB; i++) wp[i] = AT(w) + W_0 + g * W_G + CHANNEL(i) * W_K;

    for (int block = chunk * BLK; block < min((chunk + 1) * BLK, BLOCKS); block++) {
        const int line = block / ACROSS, first = block % ACROSS * TW;
        V acc[KB][TW];
        VI rows[TW], cols[TW];
        INDEX origin[TW];
#pragma unroll
        for (int j = 0; j < TW; j++) {
            const int q = START(min(first + j, VECTORS - 1));
            rows[j] = LANE_ROW(line, q) * SH + H0;
            cols[j] = LANE_COL(q) * SW + W0;
            origin[j] = (n * G + g) * ((INDEX)CG * H * W) + ORIGIN(line, q);
#pragma unroll
            for (int i = 0; i < KB; i++) acc[i][j] = (V)(0.0f);
        }

        for (int c = 0; c < CG; c++) {
            const INDEX plane = c * (INDEX)(H * W);
            if (SAFE(plane + origin[0], plane + origin[TW - 1]))
                ADD_TAPS(UNROLL_R, _Pragma("unroll"), FETCH)
            else
                ADD_TAPS(_Pragma("nounroll"), _Pragma("nounroll"), FETCH_LANES)
        }

#pragma unroll
        for (int j = 0; j < TW; j++) {
            if (first + j >= VECTORS) continue;
            const int q = START(first + j), from = (first + j) * VW - q;
#pragma unroll
            for (int i = 0; i < KB; i++) {
                if (k0 + i >= KG) continue;
                const int k = g * KG + k0 + i;
                if (JOINED && from == 0) {
                    FINISH(VW, n, k, Y_0 + line * Y_R + q, acc[i][j])
                } else {
                    float lane[VW];
                    STORE(float, VW, acc[i][j], lane);
                    for (int l = from; l < LANES_USED;) {
                        const int oh = FLAT ? (q + l) / W : line, ow = FLAT ? (q + l) % W : q + l;
                        const int run = min(OW - ow, LANES_USED - l), at = Y_0 + oh * Y_R + ow * Y_C;
                        if (run <= 0) {
                            l += W - ow;  // between the rows of a plane wider than the output
                            continue;
                        }
#if Y_C == 1
                        RUNS
#endif
                        FINISH(1, n, k, at, lane[l])
                        l++;
                    }
                }
            }
        }
    }
}
