// Gradient of a 3x3 convolution for its weights, in Winograd's domain; the transforms are in
// winograd_points.cl, images lie channels-last. Tile t of dy is (n, th, tw), tw fastest.
//
//   dw = G^T [ sum over tiles of (B^T x B) * (A dy A^T) ] G
//
// Layout, in elements; scratch in floats:
//   x, dy  [n, c, h, w] at n * XN + h * XH + w * XW + c, likewise DN DH DW; zero outside. The numbers
//          of x for tile (th, tw) begin at row th * TILE + H0, column tw * TILE + W0
//   dw     (k, c, r, s) at k * W_K + c * W_C + r * W_R + s * W_S
//   v, m   x and dy at point p of tile t, channel c: p * V_P + t * V_T + c, likewise M_P M_T
//   u      sums at point p, channel c, lane l of a block's slice: p * U_P + c * KB + l
// The images come in groups of N, so that v and m stay in the last cache: two launches for each.
//
// STAGE, and what a work-item does of it:
//   0  v and m of TC tiles
//   1  for SHARE blocks of CB channels of x and KB of dy the products at every point, summed over the
//      group's tiles in order; MORE: added to the sums of the groups before; LAST: and dw
//
//                 m: NV vectors at tile t
//                 [ VW ][ VW ]
//   v: one    c0  [acc ][acc ]      2 * TR * NV * VW operations for TR + NV loads
//   number    c1  [acc ][acc ]
//   each      ..
//
// Sizes: any, C at least IW and K at least JW. Channels past the last are computed from whatever
// lies in scratch, and not stored. The order of additions is always the same.
//
// TILE (4)   2 or 4                            TX TD TY  storage of x, dy and dw
// VW (1)     lanes along k                     IW JW     lanes along the channels of x and dy read
// NV (2)     vectors of a block: KB = NV * VW  TR (8)    channels of x of a product; divides CB
// N C K H W OH OW TH TW   sizes                WGS (1)   items of a work-group
// ITEMS      of the launch                     SLICES    1: a slice of u per block, 0: per item
// INDEX      int, or long where a tensor has 2^31 elements

#define KB (NV * VW)
#define TILES (N * TH * TW)
#define K_BLOCKS ((K + KB - 1) / KB)
#define C_BLOCKS ((C + CB - 1) / CB)
#define IV VEC(float, IW)
#define JV VEC(float, JW)
#define KV VEC(float, VW)

#if STAGE == 0
#define X_AT(i, j) LOAD(TX, IW, from + (i) * XH + (j) * XW)
#define X_IN(i, j)                                                                                 \
    ((uint)(h0 + i) < (uint)H && (uint)(w0 + j) < (uint)W ? X_AT(i, j) : (IV)(0.0f))
#define X_PUT(a, b, o) STORE(float, IW, o, to + (a * PIXELS + b) * (INDEX)V_P);
#define D_AT(i, j) LOAD(TD, JW, from + (i) * DH + (j) * DW)
#define D_IN(i, j) (h + i < OH && w + j < OW ? D_AT(i, j) : (JV)(0.0f))
#define D_PUT(a, b, o) STORE(float, JW, o, to + (a * PIXELS + b) * (INDEX)M_P);

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TD, dy), BUF(float, v), BUF(float, m)) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    for (int t = item * TC; t < min(item * TC + TC, TILES); t++) {
        const int n = t / (TH * TW), h = t / TW % TH * TILE, w = t % TW * TILE;
        const int h0 = h + H0, w0 = w + W0;
        const bool inside = h0 >= 0 && w0 >= 0 && h0 + PIXELS <= H && w0 + PIXELS <= W;
        for (int vector = 0; vector < (C + IW - 1) / IW; vector++) {
            const int c = min(vector * IW, C - IW);
            global const TX* from = AT(x) + n * (INDEX)XN + h0 * (INDEX)XH + w0 * XW + c;
            global float* to = AT(v) + t * (INDEX)V_T + c;
            if (inside)
                CARRY(IV, B_LINE, PIXELS, PIXELS, X_AT, X_PUT)
            else
                CARRY(IV, B_LINE, PIXELS, PIXELS, X_IN, X_PUT)
        }
        const bool whole = h + TILE <= OH && w + TILE <= OW;
        for (int vector = 0; vector < (K + JW - 1) / JW; vector++) {
            const int k = min(vector * JW, K - JW);
            global const TD* from = AT(dy) + n * (INDEX)DN + h * (INDEX)DH + w * DW + k;
            global float* to = AT(m) + t * (INDEX)M_T + k;
            if (whole)
                CARRY(JV, A_BACK, PIXELS, TILE, D_AT, D_PUT)
            else
                CARRY(JV, A_BACK, PIXELS, TILE, D_IN, D_PUT)
        }
    }
}
#else
#define GET(a, b) LOAD(float, VW, from + (a * PIXELS + b) * U_P)
#define PUT(r, s, o)                                                                               \
    if (W_K == 1 && k + VW <= K) {                                                                 \
        STORE(TY, VW, o, to + (r) * W_R + (s) * W_S);                                              \
    } else {                                                                                       \
        float lane[VW];                                                                            \
        STORE(float, VW, o, lane);                                                                 \
        for (int l = 0; l < min(VW, K - k); l++)                                                   \
            STORE(TY, 1, lane[l], to + l * W_K + (r) * W_R + (s) * W_S);                           \
    }

// u of TR channels of x from all tiles of the group, at a point.
static inline void CAT(ENTRY_NAME, _product)(
    global const float* v, global const float* m, global float* u
) {
    KV acc[TR][NV];
    EACH(i, TR) EACH(j, NV) acc[i][j] = MORE ? LOAD(float, VW, u + i * KB + j * VW) : (KV)(0.0f);
    for (int t = 0; t < TILES; t++) {
        KV mv[NV];
        EACH(j, NV) mv[j] = LOAD(float, VW, m + t * (INDEX)M_T + j * VW);
        EACH(i, TR) {
            const KV a = (KV)(v[t * (INDEX)V_T + i]);
            EACH(j, NV) acc[i][j] = fma(a, mv[j], acc[i][j]);
        }
    }
    EACH(i, TR) EACH(j, NV) STORE(float, VW, acc[i][j], u + i * KB + j * VW);
}

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(float, v), CBUF(float, m), BUF(float, u)
#if LAST
           , BUF(TY, y)
#endif
) {
    const int item = get_global_id(0);
    if (item >= ITEMS) return;
    for (int block = item * SHARE; block < min(item * SHARE + SHARE, K_BLOCKS * C_BLOCKS); block++) {
        const int c0 = block / K_BLOCKS * CB, k0 = block % K_BLOCKS * KB;
        global float* us = AT(u) + (SLICES ? block : item) * (INDEX)(POINTS * U_P);
        for (int p = 0; p < POINTS; p++)
            for (int c = 0; c < min(CB, C - c0); c += TR)
                CAT(ENTRY_NAME, _product)(AT(v) + p * (INDEX)V_P + c0 + c, AT(m) + p * (INDEX)M_P + k0,
                                     us + p * U_P + c * KB);
#if LAST
        for (int c = c0; c < min(C, c0 + CB); c++)
            for (int k = k0; k < min(K, k0 + KB); k += VW) {
                global const float* from = us + (c - c0) * KB + k - k0;
                global TY* to = AT(y) + k * W_K + c * W_C;
                CARRY(KV, G_BACK, 3, PIXELS, GET, PUT)
            }
#endif
    }
}
#endif
