// Convolution of images whose channels lie side by side, lanes along the output channels:
//   y[n, k, oh, ow] = sum over c, r, s of w[k, c, r, s] * x[n, c, row(oh, r), column(ow, s)]
// with row H0 + oh*SH + r*DR and column W0 + ow*SW + s*DS; what lies outside the plane is zero.
//
// Layout, in elements; channels form G groups of CG inputs and KG outputs, k and c counted in theirs:
//   x  (n, g, c, h, w)     at n*XN + (g*CG + c)*XC + h*XH + w*XW
//   w  (g, k, c, r, s)     PANEL 1: a panel [g][KT][r][s][c][KB] with zeros past KG, tap r at WR0 + r*WR1
//                          PANEL 0: at g*W_G + k*W_K + c*W_C + r*W_R + s*W_S + W_0; W_K is 1 if VW is not
//   y  (n, g, k, oh, ow)   at n*YN + (Y_H0 + oh*Y_HS)*YH + (Y_W0 + ow*Y_WS)*YW + g*KG + k
// The strides of w and y let the gradient for the input be the same kernel: channels exchanged, taps
// backwards, and for a stride one launch per phase that writes every SH-th row, SW-th column.
//
// A tile is TN images by TW pixels of a row, by NV vectors of VW channels, all in registers:
//
//                 w: NV vector loads per c
//                    [ b0: VW ][ b1: VW ]   NV = 2
//   x: one      p0   [ acc    ][ acc    ]
//   scalar per  p1   [ acc    ][ acc    ]   2·TN·TW·NV·VW operations for TN·TW + NV loads
//   pixel       p2   [ acc    ][ acc    ]   TN·TW = 3
//
// An item walks BLK tiles of pixels for each of KTS tiles of channels, so that their weights stay near.
// Taps outside the rows are left out; where a tap leaves the columns for some pixels of a tile, their
// numbers are masked. Any sizes: the last tiles begin early and store only what is new.
//
// N G KG CG   batch, groups, channels of y and x in a group      TX TT TY  storage: float or half
// TN TW NV VW the tile (TN at most N, TW at most OW; PANEL 0: KG a multiple of VW)
// BLK KTS     tiles of an item                                   (default: enough items for all cores)
// UNROLL_C    how many channels of x are unrolled                (default 4)
// WGS         items of a work-group                              (default 1; GPU 64)
// INDEX       int, or long where a tensor has 2^31 elements
// FINISH(LW, n, k, h, w, v)  store v, the LW results from channel k (over all groups) on
// TAIL(n, k, h, w, v)        store the KG % VW results of a vector that reaches past the channels
// OUTPUTS     the buffers behind the operands: y, or those of an epilogue

#define V VEC(float, VW)
// The vector of a tile that may reach past the channels, and those that never do.
#define TAIL_AT (KG % VW ? KG / VW % NV : NV)
#define WHOLE(v) (KG % KB == 0 || (KG > KB ? 0 : ((v) + 1) * VW <= KG))
// Whether a pixel is no repeated one; no test where there are none.
#define NEW(test, ragged) ((ragged) == 0 || (test))
#define KB (NV * VW)
#define KT ((KG + KB - 1) / KB)
#define ACROSS ((OW + TW - 1) / TW)
#define DEEP ((N + TN - 1) / TN)
#define TILES (DEEP * OH * ACROSS)
#define CHUNKS ((TILES + BLK - 1) / BLK)
#define SHARES ((KT + KTS - 1) / KTS)

#ifndef FINISH
#define FINISH(LW, n, k, h, w, v) STORE(TY, LW, v, AT(y) + (n) * (INDEX)YN + (h) * YH + (w) * YW + (k));
#endif

// Where the weights of channel vector v begin, and the step from channel to channel of x.
#if PANEL
#define W_STEP KB
#define WEIGHTS(r, s)                                                                     \
    (AT(w) + (((INDEX)(g * KT + tile_k) * WR + WR0 + (r) * WR1) * WS + WS0 + (s) * WS1) * (CG * KB))
#define COLUMN(v) ((v) * VW)
#else
#define W_STEP W_C
#define WEIGHTS(r, s) (AT(w) + W_0 + g * (INDEX)W_G + (r) * W_R + (s) * W_S)
#define COLUMN(v) (min(tile_k * KB + (v) * VW, KG - VW) * W_K)
#endif

// Add the taps of all channels of x to the tile; PIXEL(i, j) is the number of pixel j of image i.
#define ADD_TAP(UNROLL, PIXEL)                                                            \
    UNROLL for (int c = 0; c < CG; c++) {                                      \
        V b[NV];                                                                          \
        _Pragma("unroll") for (int v = 0; v < NV; v++) b[v] = LOAD(TT, VW, wp + columns[v]); \
        _Pragma("unroll") for (int i = 0; i < TN; i++)                                    \
            _Pragma("unroll") for (int j = 0; j < TW; j++) {                              \
                const V a = (V)(PIXEL(i, j));                                             \
                _Pragma("unroll") for (int v = 0; v < NV; v++)                            \
                    acc[i * TW + j][v] = fma(a, b[v], acc[i * TW + j][v]);                \
            }                                                                             \
        wp += W_STEP;                                                                     \
        xp += XC;                                                                         \
    }
#define INNER(i, j) LOAD(TX, 1, xp + (i) * XN + (j) * (SW * XW))
#define EDGE(i, j) as_float(as_int(LOAD(TX, 1, xp + (i) * XN + at[j])) & inside[j])

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TT, w), OUTPUTS) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)G * SHARES * CHUNKS) return;
    const int chunk = item % CHUNKS, share = item / CHUNKS % SHARES, g = item / CHUNKS / SHARES;

    for (int tile_k = share * KTS; tile_k < min((share + 1) * KTS, KT); tile_k++) {
        int columns[NV];
#pragma unroll
        for (int v = 0; v < NV; v++) columns[v] = COLUMN(v);

        for (int tile = chunk * BLK; tile < min((chunk + 1) * BLK, TILES); tile++) {
            const int across = tile % ACROSS * TW, oh = tile / ACROSS % OH;
            const int deep = tile / ACROSS / OH * TN;
            const int ow0 = min(across, OW - TW), n0 = min(deep, N - TN);
            global const TX* image = AT(x) + n0 * (INDEX)XN + g * (INDEX)CG * XC;
            V acc[TN * TW][NV];
#pragma unroll
            for (int i = 0; i < TN * TW; i++)
#pragma unroll
                for (int v = 0; v < NV; v++) acc[i][v] = (V)(0.0f);

            for (int r = 0; r < R; r++) {
                const int row = oh * SH + H0 + r * DR;
                if (PADDED && (uint)row >= H) continue;
                for (int s = 0; s < S; s++) {
                    const int column = ow0 * SW + W0 + s * DS;
                    if (PADDED && (column + (TW - 1) * SW < 0 || column >= W)) continue;
                    global const TT* wp = WEIGHTS(r, s);
                    global const TX* xp = image + row * XH;
                    if (!PADDED || (column >= 0 && column + (TW - 1) * SW < W)) {
                        xp += column * XW;
                        ADD_TAP(UNROLL_C, INNER)
                    } else {
                        int at[TW], inside[TW];
#pragma unroll
                        for (int j = 0; j < TW; j++) {
                            at[j] = clamp(column + j * SW, 0, W - 1) * XW;
                            inside[j] = (uint)(column + j * SW) < W ? -1 : 0;
                        }
                        ADD_TAP(_Pragma("nounroll"), EDGE)
                    }
                }
            }

#pragma unroll
            for (int i = 0; i < TN; i++)
#pragma unroll
                for (int j = 0; j < TW; j++) {
                    const int n = n0 + i, h = Y_H0 + oh * Y_HS, w = Y_W0 + (ow0 + j) * Y_WS;
                    if (NEW(n >= deep, N % TN) && NEW(ow0 + j >= across, OW % TW)) {
#pragma unroll
                        for (int v = 0; v < NV; v++) {
                            const int k = tile_k * KB + v * VW;
                            if (WHOLE(v) || k + VW <= KG) {
                                FINISH(VW, n, g * KG + k, h, w, acc[i * TW + j][v])
                            } else if (v == TAIL_AT) {
                                TAIL(n, g * KG + k, h, w, acc[i * TW + j][v])
                            }
                        }
                    }
                }
        }
    }
}
