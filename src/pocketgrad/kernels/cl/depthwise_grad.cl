// Gradient of a depthwise convolution for its weights, on images whose channels lie side by side:
//   sums[part, r, s, k] = sum over rows (n, oh) of a part, and ow, of dy[k] * x[k / XDIV] at tap (r, s).
//
//   x    element (n, c, h, w) at n*XN + h*XH + w*XW + c; h = H0 + oh*SH + r*DR, w = W0 + ow*SW + s*DS
//   dy   element (n, k, oh, ow) at ((n*OH + oh)*OW + ow)*YP + k
//   sums dense; KB lanes for each tap, a whole number of vectors: the last vector holds the last VW
//        channels, some of which the one before it has too. depthwise_sum.cl adds the parts.
//
// An item does one of PARTS ranges of rows, BAND rows at a time so that they stay in cache while all
// channels pass; VW of them at a time, TB rows of taps in registers over the band:
//
//   TB*S vectors of sums; TW dy and (TW-1)*SW + S x vectors for TW*S products each
//
// LINES OH OW  rows, of an image, their outputs     K  channels of dy, at least VW
// H W R S SH SW DR DS H0 W0   as in depthwise.cl     LO HI  outputs whose taps are all inside
// XDIV         channels of dy that share one of x    TX TD  storage: float or half
// VW TW        lanes; outputs at a time, at most HI - LO if that is not 0
// TB BAND PARTS  rows of taps, rows of images at a time; ranges
// INDEX        int, or long where a tensor has 2^31 elements

#define V VEC(float, VW)
#define KB ((K + VW - 1) / VW * VW)

#if XDIV == 1
#define X_LANES(to, p) to = LOAD(TX, VW, (p) + k);
#else
#define X_LANES(to, p)                                                                      \
    {                                                                                       \
        float lanes[VW];                                                                    \
        for (int l = 0; l < VW; l++) lanes[l] = LOAD(TX, 1, (p) + (k + l) / XDIV);          \
        to = LOAD(float, VW, lanes);                                                        \
    }
#endif

// COUNT outputs from ow on; TESTED: columns may lie outside.
#define OUTPUTS_AT(COUNT, TESTED)                                                           \
    {                                                                                       \
        V d[COUNT];                                                                         \
        _Pragma("unroll") for (int t = 0; t < COUNT; t++)                                   \
            d[t] = LOAD(TD, VW, dys + (ow + t) * YP + k);                                   \
        _Pragma("unroll") for (int b = 0; b < TB; b++) {                                    \
            const int h = H0 + oh * SH + (r0 + b) * DR;                                     \
            if ((uint)h   >= H || r0 + b >= R) continue;                    \
            global const TX* row = AT(x) + (INDEX)n * XN + (INDEX)h * XH;                   \
            _Pragma("unroll") for (int s = 0; s < S; s++) {                                 \
                if (TESTED && (uint)(W0 + ow * SW + s * DS) >= W) continue;                 \
                _Pragma("unroll") for (int t = 0; t < COUNT; t++) {                         \
                    V v;                                                                    \
                    X_LANES(v, row + (W0 + (ow + t) * SW + s * DS) * XW)                    \
                    acc[b][s] = fma(d[t], v, acc[b][s]);                                    \
                }                                                                           \
            }                                                                               \
        }                                                                                   \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TD, dy), BUF(float, sums)) {
    const int part = get_global_id(0);
    const INDEX line0 = (INDEX)LINES * part / PARTS, lines = (INDEX)LINES * (part + 1) / PARTS;
    for (INDEX band = line0; band < lines; band += BAND)
        for (int k0 = 0; k0 < K; k0 += VW) {
            const int k = min(k0, K - VW);
            for (int r0 = 0; r0 < R; r0 += TB) {
                global float* to = AT(sums) + ((INDEX)part * R + r0) * (S * KB) + k0;
                V acc[TB][S];
#pragma unroll
                for (int b = 0; b < TB; b++)
#pragma unroll
                    for (int s = 0; s < S; s++)
                        acc[b][s] = (R % TB == 0 || r0 + b < R) && band > line0
                                        ? LOAD(float, VW, to + (b * S + s) * KB) : (V)(0.0f);
                for (INDEX line = band; line < min(lines, band + BAND); line++) {
                    const int oh = line % OH;
                    const INDEX n = line / OH;
                    global const TD* dys = AT(dy) + line * (OW * YP);
                    for (int ow = 0; ow < LO; ow++) OUTPUTS_AT(1, 1)
                    int ow = LO;
                    for (; ow + TW <= HI; ow += TW) OUTPUTS_AT(TW, 0)
                    for (; ow < OW; ow++) OUTPUTS_AT(1, 1)
                }
#pragma unroll
                for (int b = 0; b < TB; b++)
#pragma unroll
                    for (int s = 0; s < S; s++)
                        if (R % TB == 0 || r0 + b < R)
                            STORE(float, VW, acc[b][s], to + (b * S + s) * KB);
            }
        }
}
