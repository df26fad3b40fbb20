// Convolution of each channel with its own taps, and its gradient for the input, on images whose
// channels lie side by side: lanes along channels of the result, elementwise work behind it.
//
//   y[n, k, y(oh), y(ow)] = sum over m, r, s of w(k, m, r, s) * x[n, (k*XMUL + m) / XDIV, h, w]
//   with h = H0 + oh*SH + r*DR and w = W0 + ow*SW + s*DS; what lies outside is zero and never read
//
//   x   element (n, c, h, w) at n*XN + h*XH + w*XW + c
//   w   element (k, m, r, s) at W_0 + k*W_K + m*W_M + r*W_R + s*W_S
//   y   row Y_H0 + oh*Y_HS, column Y_W0 + ow*Y_WS, at n*YN + row*YH + column*YW + k; stored once or,
//       at the end of a row or of the channels, twice alike
//
// An item computes RPT rows (n, oh). Within a row it takes TW neighbouring outputs at a time, so that
// they share inputs in registers, and within them VW channels at a time. Outputs LO to HI have no
// column outside; the others test each tap.
//
// LINES OH OW   rows, of an image, their outputs     C  channels of y, at least VW
// H W R S       sizes of x, taps                     SH SW DR DS H0 W0  which inputs taps read
// XMUL XDIV     channels of x per one of y, and channels of y that share one of x
// TX TT TY      storage: float or half               LO HI  outputs whose taps are all inside
// VW TW RPT     lanes; outputs at a time, at most HI - LO if that is not 0; rows of an item
// WGS           items of a work-group                              (default 1; GPU 64)
// INDEX         int, or long where a tensor has 2^31 elements
// OUTPUTS       buffers beyond x and w
// FINISH(LW, n, k, h, w, v)  store v, the results of LW channels from k on

#define V VEC(float, VW)

#ifndef FINISH
#define FINISH(LW, n, k, h, w, v) STORE(TY, LW, v, AT(y) + (n) * YN + (h) * YH + (w) * YW + (k));
#endif

// VW numbers that lie as far apart as lanes of x or w do.
#if XMUL == 1 && XDIV == 1
#define X_LANES(to, p) to = LOAD(TX, VW, (p) + k);
#else
#define X_LANES(to, p)                                                                      \
    {                                                                                       \
        float lanes[VW];                                                                    \
        for (int l = 0; l < VW; l++) lanes[l] = LOAD(TX, 1, (p) + ((k + l) * XMUL + m) / XDIV); \
        to = LOAD(float, VW, lanes);                                                        \
    }
#endif
#if W_K == 1
#define W_LANES(to, p) to = LOAD(TT, VW, (p) + k);
#else
#define W_LANES(to, p)                                                                      \
    {                                                                                       \
        float lanes[VW];                                                                    \
        for (int l = 0; l < VW; l++) lanes[l] = LOAD(TT, 1, (p) + (INDEX)(k + l) * W_K);    \
        to = LOAD(float, VW, lanes);                                                        \
    }
#endif

// COUNT outputs from ow on; TESTED: columns may lie outside.
#define OUTPUTS_AT(COUNT, TESTED)                                                           \
    for (int k0 = 0; k0 < C; k0 += VW) {                                                    \
        const int k = min(k0, C - VW);                                                      \
        V acc[COUNT];                                                                       \
        _Pragma("unroll") for (int t = 0; t < COUNT; t++) acc[t] = (V)(0.0f);               \
        for (int m = 0; m < XMUL; m++)                                                      \
            for (int r = 0; r < R; r++) {                                                   \
                const int h = H0 + oh * SH + r * DR;                                        \
                if ((uint)h >= H) continue;                                                 \
                global const TX* row = AT(x) + (INDEX)n * XN + (INDEX)h * XH;               \
                global const TT* taps = AT(w) + (W_0) + (INDEX)m * W_M + r * (W_R);         \
                _Pragma("unroll") for (int s = 0; s < S; s++) {                             \
                    if (TESTED && (uint)(W0 + ow * SW + s * DS) >= W) continue;             \
                    V tap;                                                                  \
                    W_LANES(tap, taps + s * (W_S))                                          \
                    _Pragma("unroll") for (int t = 0; t < COUNT; t++) {                     \
                        V v;                                                                \
                        X_LANES(v, row + (W0 + (ow + t) * SW + s * DS) * XW)                \
                        acc[t] = fma(tap, v, acc[t]);                                       \
                    }                                                                       \
                }                                                                           \
            }                                                                               \
        _Pragma("unroll") for (int t = 0; t < COUNT; t++) {                                 \
            const int y_h = Y_H0 + oh * Y_HS, y_w = Y_W0 + (ow + t) * Y_WS;                 \
            FINISH(VW, n, k, y_h, y_w, acc[t])                                              \
        }                                                                                   \
    }

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TT, w), OUTPUTS) {
    const INDEX item = get_global_id(0);
    for (INDEX line = item * RPT; line < min((INDEX)LINES, (item + 1) * RPT); line++) {
        const int oh = line % OH;
        const INDEX n = line / OH;
        for (int ow = 0; ow < LO; ow++) OUTPUTS_AT(1, 1)
        for (int first = LO; first < HI; first += TW) {
            const int ow = min(first, HI - TW);
            OUTPUTS_AT(TW, 0)
        }
        for (int ow = HI; ow < OW; ow++) OUTPUTS_AT(1, 1)
    }
}
