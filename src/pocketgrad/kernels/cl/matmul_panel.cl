// Matrix product for CPUs, operands in panels: y[g, m, n] = sum over k of a[g, m, k] * b[g, k, n].
//
// A panel is what one register tile needs, in the order in which it needs it; see panels.cl:
//   packed a   [g, MT, K, PITCH]   or a itself:  A_BATCH + m*A_M + k*A_K
//   packed b   [g, NT, K, TN*VW]   or b itself:  B_BATCH + k*B_K + n
//   y          Y_BATCH + m*Y_M + n*Y_N           (_BATCH: expressions of the variable g)
//
//              b: one vector load per column vector and k
//                 [ b0: VW ][ b1: VW ]  TN = 2
//   a: one   a0   [ acc    ][ acc    ]
//   scalar   a1   [ acc    ][ acc    ]        2·TM·TN·VW operations for TM + TN loads
//   per row  …    [ acc    ][ acc    ]
//            TM = 14: 28 sums and 2 operands fill the 32 registers of AVX-512
//
// An item computes MB by NB such tiles; its rows of a stay in the second-level cache while panels of b
// go by. Tiles past the end: packed panels hold zeros there, others begin earlier; results are
// stored once. Any sizes, but M >= TM where a is not packed and N >= TN*VW where b is not.
//
// M K N G     sizes, number of products                      TA TB TY  storage: float or half
// VW TM TN    lanes, rows and column vectors of a tile       (default: by registers and waste)
// MB NB       tiles of an item, by cache and cores
// A_PACKED B_PACKED  1: the operand is a scratch panel of floats      PITCH  of columns of a's
// INDEX       int, or long where a tensor has 2^31 elements
// FINISH(LW, g, m, n, v)  store v, the LW results from column n on (neighbours in y)
// OUTPUTS     the buffers behind the operands: y, or those of an epilogue

#define V VEC(float, VW)
#define WIDE (TN * VW)
#define MT ((M + TM - 1) / TM)
#define NT ((N + WIDE - 1) / WIDE)
#define MBLOCKS ((MT + MB - 1) / MB)
#define NBLOCKS ((NT + NB - 1) / NB)
#if A_PACKED
#define ROW(mt) ((mt) * TM)
#define A_TILE AT(a) + (g * MT + mt) * ((INDEX)K * PITCH)
#define A_AT(i, k) (k) * PITCH + (i)
#else
#define ROW(mt) min((mt) * TM, M - TM)
#define A_TILE AT(a) + A_BATCH + m0 * (INDEX)A_M
#define A_AT(i, k) (i) * A_M + (k) * A_K
#endif
#if B_PACKED
#define COLUMN(nt) ((nt) * WIDE)
#define B_TILE AT(b) + (g * NT + nt) * ((INDEX)K * WIDE)
#define B_AT(j, k) (k) * WIDE + (j) * VW
#else
#define COLUMN(nt) min((nt) * WIDE, N - WIDE)
#define B_TILE AT(b) + B_BATCH + n0
#define B_AT(j, k) (k) * B_K + (j) * VW
#endif

#ifndef FINISH
#define FINISH(LW, g, m, n, v) STORE(TY, LW, v, AT(y) + Y_BATCH + (m) * (INDEX)Y_M + (n) * Y_N);
#endif

#define ADD_COLUMN(k)                                                              \
    {                                                                              \
        V bv[TN];                                                                  \
        _Pragma("unroll") for (int j = 0; j < TN; j++)                             \
            bv[j] = LOAD(TB, VW, bp + B_AT(j, k));                                 \
        _Pragma("unroll") for (int i = 0; i < TM; i++) {                           \
            const V av = (V)(LOAD(TA, 1, ap + A_AT(i, k)));                        \
            _Pragma("unroll") for (int j = 0; j < TN; j++)                         \
                acc[i][j] = fma(av, bv[j], acc[i][j]);                             \
        }                                                                          \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void ENTRY(CBUF(TA, a), CBUF(TB, b), OUTPUTS) {
    const int item = get_global_id(0);
    const int mfirst = item % MBLOCKS * MB, nfirst = item / MBLOCKS % NBLOCKS * NB;
    const INDEX g = item / (MBLOCKS * NBLOCKS);
    for (int nt = nfirst; nt < min(nfirst + NB, NT); nt++) {
        const int n0 = COLUMN(nt);
        global const TB* bp = B_TILE;
        for (int mt = mfirst; mt < min(mfirst + MB, MT); mt++) {
            const int m0 = ROW(mt);
            global const TA* ap = A_TILE;
            V acc[TM][TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) acc[i][j] = (V)(0.0f);
#pragma unroll 4
            for (INDEX k = 0; k < K - K % 4; k++) ADD_COLUMN(k)
#if K % 4
#pragma nounroll
            for (INDEX k = K - K % 4; k < K; k++) ADD_COLUMN(k)
#endif
            const int mskip = mt * TM - m0, nskip = nt * WIDE - n0;  // results another tile stores
            const int mend = min(TM, M - m0), nend = min(WIDE, N - n0);
            if (Y_N == 1 && mskip == 0 && nskip == 0 && mend == TM && nend == WIDE) {
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) {
                        FINISH(VW, g, m0 + i, n0 + j * VW, acc[i][j])
                    }
            } else {
                float tile[TM * WIDE];
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) STORE(float, VW, acc[i][j], tile + i * WIDE + j * VW);
                if (mskip == 0 && mend == TM) {
#pragma nounroll
                    for (int l = nskip; l < nend; l++)
#pragma unroll
                        for (int i = 0; i < TM; i++) {
                            FINISH(1, g, m0 + i, n0 + l, tile[i * WIDE + l])
                        }
                } else {
#pragma nounroll
                    for (int i = mskip; i < mend; i++)
#pragma nounroll
                        for (int l = nskip; l < nend; l++) {
                            FINISH(1, g, m0 + i, n0 + l, tile[i * WIDE + l])
                        }
                }
            }
        }
    }
}
