// Matrix product, lanes along k: y[g, m, n] = sum over k of a[g, m, k] * b[g, k, n].
//
// For two operands whose rows run along k in memory, as in x·Wᵀ. Tensors and macros as in
// matmul.cl, with A_K = B_K = 1. Any M and N; K is at least VW.
//
// An item computes TM rows by TN columns; every result has a vector of VW partial sums, which are
// added once at the end, always in the same order:
//
//                b0  b1  b2  b3   vectors of VW along k     TN = 4
//   a: vectors   [ acc, VW lanes each ]
//   along k      [                    ]     2·TM·TN·VW operations for TM + TN vector loads
//   TM = 4
//
// Rows past M are computed on row M-1 and not stored; where TN does not divide N, the last tile
// begins at N-TN and only its new columns are stored. Where VW does not divide the range of k, the
// last vector ends at the range's end, and its lanes that were already added count as zero.
//
// VW       partial sums of a result: 1 2 4 8 16, at most K    (default: the device's width)
// TM       rows of an item: 1 2 3 4                           (default 4)
// TN       columns of an item: 1 2 4 8, at most N             (default 4)
// FINISH(LW, g, m, n, v)  store v, the LW results from column n on (neighbours in y)
// OUTPUTS  the buffers behind the operands: y, or those of an epilogue

#define V VEC(float, VW)
#define MT ((M + TM - 1) / TM)
#define NT ((N + TN - 1) / TN)
#define KP ((K + PARTS - 1) / PARTS)
#define ROW(i) (M % TM == 0 ? m0 + (i) : min(m0 + (i), (INDEX)(M - 1)))

#ifndef FINISH
#define FINISH(LW, g, m, n, v) STORE(TY, LW, v, AT(y) + Y_BATCH + (m) * Y_M + (n) * Y_N);
#endif

// Two vectors of partial sums in one, the halves of each added; pairs of neighbours to four sums.
#define PAIR(a, b) (V)((a).lo + (a).hi, (b).lo + (b).hi)
#define EVEN_ODD(v) ((v).even + (v).odd)
#define TO_4_4(v) (v)
#define TO_4_8(v) EVEN_ODD(v)
#define TO_4_16(v) EVEN_ODD(EVEN_ODD(v))

// Add the products at k to all sums; SEEN lanes are left out.
#define ADD(k, KEEP)                                                                    \
    {                                                                                   \
        V bv[TN];                                                                       \
        _Pragma("unroll") for (int j = 0; j < TN; j++)                                  \
            bv[j] = KEEP(LOAD(TB, VW, bp + j * B_N + (k)));                             \
        _Pragma("unroll") for (int i = 0; i < TM; i++) {                                \
            const V av = KEEP(LOAD(TA, VW, ap[i] + (k)));                               \
            _Pragma("unroll") for (int j = 0; j < TN; j++)                              \
                acc[i][j] = fma(av, bv[j], acc[i][j]);                                  \
        }                                                                               \
    }
#define ALL_LANES(v) (v)
#define NEW_LANES(v) select((V)(0.0f), v, LANE_NUMBERS(VW) >= (VEC(int, VW))(seen))

kernel __attribute__((reqd_work_group_size(WGS, 1, 1))) void ENTRY(CBUF(TA, a), CBUF(TB, b), OUTPUTS) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)PARTS * G * MT * NT) return;
    const INDEX tile = item % (MT * NT), g = item / (MT * NT) % G, part = item / (MT * NT) / G;
    const INDEX m0 = (ROWS_FIRST ? tile % MT : tile / NT) * TM;
    const INDEX nt = (ROWS_FIRST ? tile / MT : tile % NT) * TN;
    const INDEX n0 = N % TN == 0 ? nt : min(nt, (INDEX)(N - TN));

    V acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] = (V)(0.0f);

    global const TA* ap[TM];
    global const TB* bp = AT(b) + B_BATCH + n0 * B_N;
#pragma unroll
    for (int i = 0; i < TM; i++) ap[i] = AT(a) + A_BATCH + ROW(i) * A_M;

    INDEX k = part * (INDEX)KP;
    const INDEX last = min(k + (INDEX)KP, (INDEX)K);
    for (; k + VW <= last; k += VW) ADD(k, ALL_LANES)
    if (k < last) {  // a vector that ends at `last`; one before it holds at least K >= VW elements
        const int seen = (int)(k - (last - VW));
        ADD(last - VW, NEW_LANES)
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
        if (m0 + i < M) {
#if TN == 4 && VW >= 4  // four sums at once: half the shuffles of one by one
            const V low = PAIR(acc[i][0], acc[i][1]), high = PAIR(acc[i][2], acc[i][3]);
            const float4 result = CAT(TO_4_, VW)((V)(low.even + low.odd, high.even + high.odd));
            float sums[TN];
            vstore4(result, 0, sums);
#else
            float sums[TN];
#pragma unroll
            for (int j = 0; j < TN; j++) sums[j] = LANES(VW, acc[i][j]);
            const VEC(float, TN) result = LOAD(float, TN, sums);
#endif
            if (Y_N == 1 && nt == n0) {
                FINISH(TN, g, m0 + i, n0, result)
            } else {
                for (int l = nt - n0; l < TN; l++) {
                    FINISH(1, g, m0 + i, n0 + l, sums[l])
                }
            }
        }
}
