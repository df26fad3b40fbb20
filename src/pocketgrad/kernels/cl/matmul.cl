// Matrix product, lanes along n: y[g, m, n] = sum over k of a[g, m, k] * b[g, k, n].
//
// Element (g, m, k) of a is AT(a)[A_BATCH + m*A_M + k*A_K], likewise b with B_BATCH B_K B_N and y with
// Y_BATCH Y_M Y_N; the _BATCH macros are expressions of the variable g. Strides may be anything,
// also 0 or negative, with one condition: B_N is 1 where VW > 1. Any M, K, N; K = 0 gives zeros.
//
// An item computes TM rows by TN vectors of VW columns over all k (or one of PARTS ranges of k):
//
//              b: one vector load per column vector and k
//                 [ b0: VW ][ b1: VW ]  TN = 2
//   a: one   a0   [ acc    ][ acc    ]
//   scalar   a1   [ acc    ][ acc    ]        2·TM·TN·VW operations for TM + TN loads
//   per row  a2   [ acc    ][ acc    ]
//            TM = 3
//
// Rows past M are computed on row M-1 and not stored. Where VW does not divide N, the last vector
// begins at N-VW and only its new lanes are stored, so nothing is read or written out of bounds.
//
// M K N    sizes            G        number of products      TA TB TY   storage: float or half
// VW       columns in a vector: 1 2 4 8 16, at most N        (default: the device's width)
// TM TN    rows and column vectors of an item                (default 8 and 2; GPU 4 and 1)
// PARTS    ranges of k; y then is [part, g, m, n]            (default 1)
// WGS      items of a work-group                              (default 1; GPU 64)
// ROWS_FIRST  1: neighbouring items share columns, 0: rows   (default 1; GPU 0)
// INDEX    int, or long where a tensor has 2^31 elements
// FINISH(LW, g, m, n, v)  store v, the LW results from column n on (neighbours in y)
// OUTPUTS  the buffers behind the operands: y, or those of an epilogue

#define V VEC(float, VW)
#define MT ((M + TM - 1) / TM)
#define NV ((N + VW - 1) / VW)
#define NT ((NV + TN - 1) / TN)
#define KP ((K + PARTS - 1) / PARTS)
#define ROW(i) (M % TM == 0 ? m0 + (i) : min(m0 + (i), (INDEX)(M - 1)))
#define COL(j) (N % (TN * VW) == 0 ? (n0 + (j)) * VW : min((n0 + (j)) * VW, (INDEX)(N - VW)))

#ifndef FINISH
#define FINISH(LW, g, m, n, v) STORE(TY, LW, v, AT(y) + Y_BATCH + (m) * Y_M + (n) * Y_N);
#endif

kernel __attribute__((reqd_work_group_size(WGS, 1, 1))) void ENTRY(CBUF(TA, a), CBUF(TB, b), OUTPUTS) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)PARTS * G * MT * NT) return;
    const INDEX tile = item % (MT * NT), g = item / (MT * NT) % G, part = item / (MT * NT) / G;
    const INDEX m0 = (ROWS_FIRST ? tile % MT : tile / NT) * TM;
    const INDEX n0 = (ROWS_FIRST ? tile / MT : tile % NT) * TN;

    V acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = (V)(0.0f);

    global const TA* ap[TM];
    global const TB* bp[TN];
#pragma unroll
    for (int i = 0; i < TM; i++) ap[i] = AT(a) + A_BATCH + ROW(i) * A_M;
#pragma unroll
    for (int j = 0; j < TN; j++) bp[j] = AT(b) + B_BATCH + COL(j) * B_N;

    const INDEX last = min((part + 1) * (INDEX)KP, (INDEX)K);
    for (INDEX k = part * (INDEX)KP; k < last; k++) {
        V bv[TN];
#pragma unroll
        for (int j = 0; j < TN; j++) bv[j] = LOAD(TB, VW, bp[j] + k * B_K);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const V av = (V)(LOAD(TA, 1, ap[i] + k * A_K));
#pragma unroll
            for (int j = 0; j < TN; j++) acc[i][j] = fma(av, bv[j], acc[i][j]);
        }
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            if (m0 + i < M && n0 + j < NV) {
                const INDEX n = COL(j);
                const int from = (n0 + j) * VW - n;
                if (Y_N == 1 && from == 0) {
                    FINISH(VW, g, m0 + i, n, acc[i][j])
                } else {
                    float lane[VW];
                    STORE(float, VW, acc[i][j], lane);
                    for (int l = from; l < VW; l++) {
                        FINISH(1, g, m0 + i, n + l, lane[l])
                    }
                }
            }
}
