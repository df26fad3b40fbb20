// Winograd convolution with 3x3 taps of images whose channels lie side by side; the transforms are in
// winograd_points.cl. A plane of y falls into TH x TW tiles; tile t is (n, th, tw), tw fastest.
//
// Layout, in elements; scratch in floats:
//   x  [n, c, h, w] at n * XN + h * XH + w * XW + c, zero outside H x W; the numbers of tile (th, tw)
//      begin at row th * TILE + H0, column tw * TILE + W0
//   w  [k, c, r, s] at W_0 + k * W_K + c * W_C + r * W_R + s * W_S: strides let the gradient for the
//      input exchange channels and turn taps backwards
//   y  [n, k, i, j], K channels, OH x OW; stored through FINISH
//   v  x at point p of tile t, channel c      at p * V_P + t * V_T + c
//   u  w at point p, channel c, lane l        at p * U_P + block * U_B + c * KB + l
//   m  products at point p of tile t, lane l  at p * M_P + t * M_T + block * M_B + l
// A block is KB channels of y. A product is a matrix product at each point, in TR x NV vectors of sums:
//
//                 u: NV vectors
//                 [ VW ][ VW ]
//   v: one    t0  [acc ][acc ]      2 * TR * NV * VW operations for TR + NV loads
//   number    t1  [acc ][acc ]
//   per tile  ..
//
// STAGE, and what a work-item does of it:
//   0  v of TC tiles, SPAN vectors of channels
//   1  u of CB channels of x in a block
//   2  m of TR tiles in a block at a point
//   3  y of TC tiles in a block
//   4  all but 1 for chunks of TC tiles, SHARE of them one after another; v of a chunk, and m of a
//      block, are slices of scratch of its own that stay in its cache
//   5  all but 0 for a block and a chunk; u of CB channels at a time, and m, are slices of its own
// 0, 1, 2, 3 one after the other suit GPUs; 1 and 4 suit CPUs, 0 and 5 where weights outweigh images.
//
// Sizes: any, C at least IW. Channels past K are computed from zeros, tiles past the last from
// whatever lies there; neither is stored.
//
// TILE (4)   2 or 4                            TX TT TY  storage of x, w and y
// VW (1)     lanes along k                     IW (1)    lanes along c of what reads x
// NV (2)     vectors of a block: KB = NV * VW  TR (8)    tiles of a product
// TC, CB     tiles and channels at a time      WGS (1)   items of a work-group
// N C K H W OH OW TH TW   sizes                ITEMS     of the launch
// INDEX      int, or long where a tensor has 2^31 elements
// FINISH(LW, n, k, i, j, v)  store v, the LW results from channel k on

#define KB (NV * VW)
#define TILES (N * TH * TW)
#define VECTORS ((C + IW - 1) / IW)
#define K_BLOCKS ((K + KB - 1) / KB)
#define C_BLOCKS ((C + CB - 1) / CB)
#define T_CHUNKS ((TILES + TC - 1) / TC)
#define IV VEC(float, IW)
#define KV VEC(float, VW)

#ifndef FINISH
#define FINISH(LW, n, k, i, j, v)                                                                  \
    STORE(TY, LW, v, AT(y) + (n) * (INDEX)YN + (i) * (INDEX)YH + (j) * YW + (k));
#endif

#if STAGE == 0 || STAGE == 4
#define IS_IN(i, j) ((uint)(h0 + i) < (uint)H && (uint)(w0 + j) < (uint)W)
#define GET(i, j) LOAD(TX, IW, from + i * XH + j * XW)
#define GET_IN(i, j) (IS_IN(i, j) ? GET(i, j) : (IV)(0.0f))
#define PUT(a, b, o) STORE(float, IW, o, to + (a * PIXELS + b) * (INDEX)V_P);

// v of tile t, vectors of channels from ``first`` to ``past``; v points at the tile's own.
static inline void CAT(ENTRY_NAME, _input)(
    global const TX* x, global float* v, const int t, const int first, const int past
) {
    const int h0 = t / TW % TH * TILE + H0, w0 = t % TW * TILE + W0;
    global const TX* corner = x + t / (TH * TW) * (INDEX)XN + h0 * (INDEX)XH + w0 * XW;
    const bool inside = h0 >= 0 && w0 >= 0 && h0 + PIXELS <= H && w0 + PIXELS <= W;
    for (int vector = first; vector < past; vector++) {
        const int c = min(vector * IW, C - IW);
        global const TX* from = corner + c;
        global float* to = v + c;
        if (inside)
            CARRY(IV, B_LINE, PIXELS, PIXELS, GET, PUT)
        else
            CARRY(IV, B_LINE, PIXELS, PIXELS, GET_IN, PUT)
    }
}
#undef GET
#undef PUT
#endif

#if STAGE == 1 || STAGE == 5
#define GET(r, s) taps[r][s]
#define PUT(a, b, o) STORE(float, VW, o, to + (a * PIXELS + b) * (INDEX)U_P);

// u of a block of channels k for the channels c from ``first`` to ``past``; u points at the first.
static inline void CAT(ENTRY_NAME, _weights)(
    global const TT* w, global float* u, const int block, const int first, const int past
) {
    for (int c = first; c < past; c++)
        for (int j = 0; j < NV; j++) {
            const int k = block * KB + j * VW;
            global const TT* from = w + W_0 + k * W_K + c * W_C;
            global float* to = u + (c - first) * KB + j * VW;
            KV taps[3][3];
            if (W_K == 1 && k + VW <= K) {
                EACH(r, 3) EACH(s, 3) taps[r][s] = LOAD(TT, VW, from + r * W_R + s * W_S);
            } else {
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 3; s++) {
                        float lane[VW];
                        EACH(l, VW) lane[l] = k + l < K ? LOAD(TT, 1, from + l * W_K + r * W_R + s * W_S) : 0.0f;
                        taps[r][s] = LOAD(float, VW, lane);
                    }
            }
            CARRY(KV, G_LINE, PIXELS, 3, GET, PUT)
        }
}
#undef GET
#undef PUT
#endif

#if STAGE == 2 || STAGE == 4 || STAGE == 5
// m of TR tiles in a block at a point, over ``channels``; ``more``: added to what m holds.
static inline void CAT(ENTRY_NAME, _product)(
    global const float* v, global const float* u, global float* m, const int channels, const bool more
) {
    KV acc[TR][NV];
    EACH(i, TR) EACH(j, NV) acc[i][j] = (KV)(0.0f);
    if (more) EACH(i, TR) EACH(j, NV) acc[i][j] = LOAD(float, VW, m + i * M_T + j * VW);
    for (int c = 0; c < channels; c++) {
        KV uv[NV];
        EACH(j, NV) uv[j] = LOAD(float, VW, u + c * KB + j * VW);
        EACH(i, TR) {
            const KV a = (KV)(v[i * V_T + c]);
            EACH(j, NV) acc[i][j] = fma(a, uv[j], acc[i][j]);
        }
    }
    EACH(i, TR) EACH(j, NV) STORE(float, VW, acc[i][j], m + i * M_T + j * VW);
}
#endif

#if STAGE >= 3
// y of a tile (n, h, w its first row and column) from channel k on; m points at the tile's own.
#if K % VW
#define REST(LW, i, j)                                                                             \
    if ((K % VW) & LW) {                                                                           \
        FINISH(LW, n, k + at, h + i, w + j, LOAD(float, LW, lane + at))                            \
        at += LW;                                                                                  \
    }
#define STORE_ALL(i, j, o)                                                                         \
    if (k + VW <= K) {                                                                             \
        FINISH(VW, n, k, h + i, w + j, o)                                                          \
    } else {                                                                                       \
        float lane[VW];                                                                            \
        STORE(float, VW, o, lane);                                                                 \
        int at = 0;                                                                                \
        REST(8, i, j) REST(4, i, j) REST(2, i, j) REST(1, i, j)                                    \
    }
#else
#define STORE_ALL(i, j, o) FINISH(VW, n, k, h + i, w + j, o)
#endif
#define GET(a, b) LOAD(float, VW, from + (a * PIXELS + b) * (INDEX)M_P)
#define PUT(i, j, o)                                                                               \
    if (h + i < OH && w + j < OW) {                                                                \
        STORE_ALL(i, j, o)                                                                         \
    }
#define OUTPUT(t, m, block)                                                                        \
    {                                                                                              \
        const int n = (t) / (TH * TW), h = (t) / TW % TH * TILE, w = (t) % TW * TILE;              \
        for (int k = (block) * KB; k < min(K, ((block) + 1) * KB); k += VW) {                      \
            global const float* from = (m) + k - (block) * KB;                                     \
            CARRY(KV, A_LINE, TILE, PIXELS, GET, PUT)                                              \
        }                                                                                          \
    }
#endif

#if STAGE == 0
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), BUF(float, v)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    const int spans = (VECTORS + SPAN - 1) / SPAN, first = item % spans * SPAN;
    const int t0 = item / spans * TC;
    for (int t = t0; t < min(t0 + TC, TILES); t++)
        CAT(ENTRY_NAME, _input)(AT(x), AT(v) + t * (INDEX)V_T, t, first, min(first + SPAN, VECTORS));
}
#elif STAGE == 1
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TT, w), BUF(float, u)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    const int block = item % K_BLOCKS, c = item / K_BLOCKS * CB;
    global float* to = AT(u) + block * (INDEX)U_B + c * (INDEX)KB;
    CAT(ENTRY_NAME, _weights)(AT(w), to, block, c, min(c + CB, C));
}
#elif STAGE == 2
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(float, v), CBUF(float, u), BUF(float, m)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    const int block = item % K_BLOCKS, t = item / K_BLOCKS % ((TILES + TR - 1) / TR) * TR;
    const int p = item / K_BLOCKS / ((TILES + TR - 1) / TR);
    global float* to = AT(m) + p * (INDEX)M_P + t * (INDEX)M_T + block * (INDEX)M_B;
    CAT(ENTRY_NAME, _product)(AT(v) + p * (INDEX)V_P + t * (INDEX)V_T,
                         AT(u) + p * (INDEX)U_P + block * (INDEX)U_B, to, C, false);
}
#elif STAGE == 3
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(float, m), OUTPUTS) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    const int block = item % K_BLOCKS, t0 = item / K_BLOCKS * TC;
    for (int t = t0; t < min(t0 + TC, TILES); t++)
        OUTPUT(t, AT(m) + block * (INDEX)M_B + t * (INDEX)M_T, block)
}
#elif STAGE == 4
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(float, u), OUTPUTS, BUF(float, v), BUF(float, m)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    global float *vs = AT(v) + item * (INDEX)(POINTS * V_P), *ms = AT(m) + item * (INDEX)(POINTS * M_P);
    for (int chunk = item * SHARE; chunk < min((item + 1) * SHARE, T_CHUNKS); chunk++) {
        const int t0 = chunk * TC, count = min(TC, TILES - t0);
        for (int t = 0; t < count; t++)
            CAT(ENTRY_NAME, _input)(AT(x), vs + t * V_T, t0 + t, 0, VECTORS);
        for (int block = 0; block < K_BLOCKS; block++) {
            global const float* ub = AT(u) + block * (INDEX)U_B;
            for (int p = 0; p < POINTS; p++)
                for (int t = 0; t < count; t += TR)
                    CAT(ENTRY_NAME, _product)(vs + p * V_P + t * V_T, ub + p * (INDEX)U_P,
                                         ms + p * M_P + t * M_T, C, false);
            for (int t = 0; t < count; t++) OUTPUT(t0 + t, ms + t * M_T, block)
        }
    }
}
#else
kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(float, v), CBUF(TT, w), OUTPUTS, BUF(float, u), BUF(float, m)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    const int block = item % K_BLOCKS, t0 = item / K_BLOCKS * TC, count = min(TC, TILES - t0);
    global float *us = AT(u) + item * (INDEX)(POINTS * U_P), *ms = AT(m) + item * (INDEX)(POINTS * M_P);
    for (int c = 0; c < C; c += CB) {
        const int channels = min(CB, C - c);
        CAT(ENTRY_NAME, _weights)(AT(w), us, block, c, c + channels);
        for (int p = 0; p < POINTS; p++)
            for (int t = 0; t < count; t += TR)
                CAT(ENTRY_NAME, _product)(AT(v) + p * (INDEX)V_P + (t0 + t) * (INDEX)V_T + c,
                                     us + p * U_P, ms + p * M_P + t * M_T, channels, c > 0);
    }
    for (int t = 0; t < count; t++) OUTPUT(t0 + t, ms + t * M_T, block)
}
#endif
