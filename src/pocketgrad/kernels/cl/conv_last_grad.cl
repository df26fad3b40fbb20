// Gradient of a convolution for its weights, of images whose channels lie side by side:
//   dw[k, c, r, s] = sum over n, oh, ow of dy[n, k, oh, ow] * x[n, c, row(oh, r), column(ow, s)].
//
// A product of matrices: rows are taps and channels of x, columns channels of dy, and pixels are added
// up. Lanes run along k. Channels form G groups of CG and KG.
//   dy  element (g, k) of pixel p, counted over all images, at p*YP + g*KG + k
//   x   element (n, g, c, h, w) at n*XN + (g*CG + c)*XC + h*XH + w*XW; for output (oh, ow) tap (r, s)
//       reads row H0 + oh*SH + r*DR and column W0 + ow*SW + s*DS; what lies outside is zero
//   dw  element (k over all groups, c, r, s) of a part is at k*DW_K + c*DW_C + r*DW_R + s*DW_S
//
// An item does MTS row tiles by KTS column tiles of one group, over one of PARTS ranges of pixels. It
// walks them in chunks of at most PB that stay in cache, and adds each to what it has stored:
//
//                    dy: NV vectors of a pixel
//                    [ acc           ]
//   x: CB scalars    [               ]            CB*NV vector operations for NV loads, CB broadcasts
//
// Where it pays, the chunk of x or dy that a tile reads is copied first, side by side and with zeros
// where it is ragged or padded. Tiles past the end begin earlier; what others have is not stored.
//
// N PIXELS     images, pixels of dy              OH OW  of an image     G KG CG  groups, channels in one
// H W R S      sizes of x, taps                  PADDED 1 if any tap lies outside
// DENSE        1 if output p reads x's pixel p: no taps, strides or padding, pixels XW apart
// GATHER       1: rows of a tile are any r, s and c, copied one by one; 0: channels of one tap, XC = 1
// TX TD TY     storage: float or half; TY is float where CHUNKS / PARTS > 1
// CB NV VW     the tile; CB at most CG (GATHER: R*S*CG), VW at most KG unless COPY_Y
// COPY_X COPY_Y  1: work on copies of x (always if GATHER), of dy
// PB PARTS     pixels of a chunk; ranges         MTS KTS  tiles of an item
// INDEX        int, or long where a tensor has 2^31 elements

#define V VEC(float, VW)
#define KB (NV * VW)
#define TAIL (KG % VW)
#define ROWS (R * S * CG)
#define CT ((CG + CB - 1) / CB)
#define MT (GATHER ? (ROWS + CB - 1) / CB : R * S * CT)
#define KT ((KG + KB - 1) / KB)
#define MBLOCKS ((MT + MTS - 1) / MTS)
#define KBLOCKS ((KT + KTS - 1) / KTS)
#define CHUNKS ((PIXELS + PB - 1) / PB)
#define DW_SIZE (G * KG * ROWS)

// First channel of vector v of a column tile as it is loaded; of a copy, lanes past the end are zero.
#define K_OF(v) (COPY_Y || KG % KB == 0 ? k0 + (v) * VW : min(k0 + (v) * VW, KG - VW))
// Row i of the tile as tap and channel.
#if GATHER
#define TAP_OF(i) ((m0 + (i)) / CG)
#define C_OF(i) ((m0 + (i)) % CG)
#else
#define TAP_OF(i) tap
#define C_OF(i) (c0 + (i))
#endif
#define DW(i) ((TAP_OF(i)) / S * DW_R + (TAP_OF(i)) % S * DW_S + C_OF(i) * DW_C)

// Lanes of a vector at p, which lie DW_K apart: all of them, or those of the ragged last one.
#define EACH(v, l) for (int l = 0; l < (k0 + (v) * VW + VW <= KG ? VW : TAIL); l++)
#define LANE_AT(v, l) ((l) + (COPY_Y || k0 + (v) * VW + VW <= KG ? 0 : VW - TAIL))
#define WHOLE(v) (DW_K == 1 && (TAIL == 0 || k0 + (v) * VW + VW <= KG))
#define STORED(v) (KG % KB == 0 || k0 + (v) * VW < KG)

// One pixel: xp points at its CB scalars, yp at the vectors of the first column.
#define PIXEL(xp, TA, yp, TB)                                                                   \
    {                                                                                           \
        V d[NV];                                                                                \
        _Pragma("unroll") for (int v = 0; v < NV; v++) d[v] = LOAD(TB, VW, (yp) + k[v]);         \
        _Pragma("unroll") for (int i = 0; i < CB; i++) {                                        \
            const V a = (V)(LOAD(TA, 1, (xp) + i));                                             \
            _Pragma("unroll") for (int v = 0; v < NV; v++) acc[i][v] = fma(a, d[v], acc[i][v]);  \
        }                                                                                       \
    }

#define COPY_PIXEL(xp, to)                                                                      \
    _Pragma("unroll") for (int i = 0; i < CB; i++) (to)[i] = LOAD(TX, 1, (xp) + i);

// Runs BODY for each stretch of a row of outputs in the chunk: pixels from to end of the chunk, of
// which those from lo to hi read column ow*SW + left of row h, if that row exists.
#define STRETCHES(BODY)                                                                         \
    for (int from = 0, end; from < count; from = end) {                                         \
        const int p = first + from, ow = p % OW, oh = p / OW % OH, n = p / (OW * OH);           \
        end = min(count, from + OW - ow);                                                       \
        const int h = H0 + oh * SH + r * DR, left = W0 + s * DS;                                \
        const bool inside = !PADDED || ((uint)h < H);                                           \
        const int lo = PADDED ? clamp((-left + SW - 1) / SW - ow, 0, end - from) + from : from; \
        const int past = PADDED ? clamp((W - left + SW - 1) / SW - ow, 0, end - from) + from    \
                                : end;                                                          \
        const int hi = inside ? max(lo, past) : lo;                                             \
        global const TX* row = AT(x) + (INDEX)n * XN + (INDEX)h * XH + (ow * SW + left) * XW;   \
        BODY                                                                                    \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TD, dy), BUF(TY, dw)) {
    const int item = get_global_id(0);
    const int mb = item % MBLOCKS, kb = item / MBLOCKS % KBLOCKS, g = item / (MBLOCKS * KBLOCKS) % G;
    const int part = item / (MBLOCKS * KBLOCKS * G);
    const int chunk0 = (int)((long)CHUNKS * part / PARTS);
    const int chunks = (int)((long)CHUNKS * (part + 1) / PARTS);
#if COPY_X
    local float xs[PB * CB];
#endif
#if COPY_Y
    local float ys[KTS * PB * KB];
#endif

    for (int chunk = chunk0; chunk < chunks; chunk++) {
        const int first = chunk * PB, count = min(PB, PIXELS - first);
        global const TD* dys = AT(dy) + (INDEX)first * YP + g * KG;
#if COPY_Y
        for (int t = 0; t < KTS; t++) {
            const int k0 = (kb * KTS + t) * KB;
            for (int p = 0; p < count; p++)
#pragma unroll
                for (int v = 0; v < NV; v++) {
                    local float* to = ys + (t * PB + p) * KB + v * VW;
                    global const TD* at = dys + (INDEX)p * YP + k0 + v * VW;
                    if (KG % KB == 0 || k0 + v * VW + VW <= KG) {
                        STORE(float, VW, LOAD(TD, VW, at), to);
                    } else {
                        STORE(float, VW, (V)(0.0f), to);
                        if (STORED(v))
                            for (int l = 0; l < TAIL; l++) to[l] = LOAD(TD, 1, at + l);
                    }
                }
        }
#endif
        for (int m = mb * MTS; m < min(MT, (mb + 1) * MTS); m++) {
#if GATHER
            const int m0 = min(m * CB, ROWS - CB), fresh = m * CB - m0;
            for (int i = 0; i < CB; i++) {
                const int tap = TAP_OF(i), r = tap / S, s = tap % S, c = g * CG + C_OF(i);
                STRETCHES({
                    for (int q = from; q < lo; q++) xs[q * CB + i] = 0.0f;
                    for (int q = lo; q < hi; q++)
                        xs[q * CB + i] = LOAD(TX, 1, row + c * XC + (q - from) * (SW * XW));
                    for (int q = hi; q < end; q++) xs[q * CB + i] = 0.0f;
                })
            }
#else
            const int tap = m / CT, r = tap / S, s = tap % S;
            const int c0 = min(m % CT * CB, CG - CB), fresh = m % CT * CB - c0;
#if COPY_X
            STRETCHES({
                for (int q = from * CB; q < lo * CB; q++) xs[q] = 0.0f;
                for (int q = lo; q < hi; q++)
                    COPY_PIXEL(row + (q - from) * (SW * XW) + g * CG + c0, xs + q * CB)
                for (int q = hi * CB; q < end * CB; q++) xs[q] = 0.0f;
            })
#endif
#endif
            for (int t = 0; t < min(KTS, KT - kb * KTS); t++) {
                const int k0 = (kb * KTS + t) * KB;
                global TY* to = AT(dw) + (INDEX)part * DW_SIZE + (INDEX)(g * KG) * DW_K;
                V acc[CB][NV];
                int k[NV];
#pragma unroll
                for (int v = 0; v < NV; v++) k[v] = COPY_Y ? v * VW : K_OF(v);
#pragma unroll
                for (int i = 0; i < CB; i++)
#pragma unroll
                    for (int v = 0; v < NV; v++) {
                        acc[i][v] = (V)(0.0f);
                        if (chunk > chunk0 && i >= fresh && STORED(v)) {
                            if (WHOLE(v)) {
                                acc[i][v] = LOAD(TY, VW, to + (INDEX)(k0 + v * VW) + DW(i));
                            } else {
                                float lanes[VW];
                                STORE(float, VW, acc[i][v], lanes);
                                EACH(v, l)
                                    lanes[LANE_AT(v, l)] =
                                        LOAD(TY, 1, to + (INDEX)(k0 + v * VW + l) * DW_K + DW(i));
                                acc[i][v] = LOAD(float, VW, lanes);
                            }
                        }
                    }
#if COPY_Y
                local const float* yt = ys + t * PB * KB;
#define Y_PIXEL(q) yt + (q) * KB
#define TB float
#else
#define Y_PIXEL(q) dys + (INDEX)(q) * YP
#define TB TD
#endif
#if COPY_X
                for (int q = 0; q < count; q++) PIXEL(xs + q * CB, float, Y_PIXEL(q), TB)
#elif DENSE
                global const TX* xt = AT(x) + (INDEX)first * XW + g * CG + c0;
                for (int q = 0; q < count; q++) PIXEL(xt + (INDEX)q * XW, TX, Y_PIXEL(q), TB)
#else
                STRETCHES({
                    row += g * CG + c0;
                    for (int q = lo; q < hi; q++)
                        PIXEL(row + (q - from) * (SW * XW), TX, Y_PIXEL(q), TB)
                })
#endif
#pragma unroll
                for (int i = 0; i < CB; i++)
#pragma unroll
                    for (int v = 0; v < NV; v++)
                        if (i >= fresh && STORED(v)) {
                            if (WHOLE(v)) {
                                STORE(TY, VW, acc[i][v], to + (INDEX)(k0 + v * VW) + DW(i));
                            } else {
                                float lanes[VW];
                                STORE(float, VW, acc[i][v], lanes);
                                EACH(v, l) {
                                    STORE(TY, 1, lanes[LANE_AT(v, l)],
                                          to + (INDEX)(k0 + v * VW + l) * DW_K + DW(i));
                                }
                            }
                        }
            }
        }
    }
}
