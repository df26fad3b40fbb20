// Gradient of a convolution for its weights:
//   dw[k, c, r, s] = sum over n, oh, ow of dy[n, k, oh, ow] * x[n, c, row(oh, r), column(ow, s)].
//
// How x is read, and what lanes are: taps.cl, with FLAT only where OW = W. Channels form G groups.
//   x   [n, g, c, H, W]   dy  [n, g, k, OH*OW]   dense
//   dw  element (k over all groups, c, r, s) of a part is at k*DW_K + c*DW_C + r*DW_R + s*DW_S, no gaps
//
// An item computes KB outputs by CB inputs by SB taps of a row r, over all positions of N images or
// one of PARTS ranges of lines. Every result has VW partial sums, added once at the end:
//
//                    x: CB·SB vectors (zero outside)
//                    [ acc, VW lanes each       ]
//   dy: KB vectors   [                          ]    2·KB·CB·SB·VW operations for KB + CB·SB loads
//
// Channels and taps past the end are computed as the last ones and not stored. Lanes of a line's last
// vector that were already added count as zero. The order of additions is always the same.
//
// N G KG CG   batch, groups, channels of dy and x in a group     TX TD TY  storage: float or half
// KB CB SB    results of an item                                 (default 4, 1 and 3)
// PARTS       ranges of lines; dw then is [part, …]              (default 1)
// WGS         items of a work-group                              (default 1; GPU 64)
// INDEX       int, or long where a tensor has 2^31 elements
// FINISH(LW, k, c, r, s, v)  store v, the result of channel k (over all groups), c, r, s; LW is 1

#define KT ((KG + KB - 1) / KB)
#define CT ((CG + CB - 1) / CB)
#define ST ((S + SB - 1) / SB)
#define TOTAL (N * LINES)
#define SHARE ((TOTAL + PARTS - 1) / PARTS)
#define DW_SIZE (G * KG * CG * R * S)

#ifndef FINISH
#define FINISH(LW, k, c, r, s, v)                                                       \
    STORE(TY, LW, v, AT(y) + (INDEX)part * DW_SIZE                                      \
                         + (k) * DW_K + (c) * DW_C + (r) * DW_R + (s) * DW_S);
#endif

#define PLANE_OF(c) (image * CG + (CG % CB == 0 ? c0 + (c) : min(c0 + (c), CG - 1)))
#define TAP(s) (S % SB == 0 ? s0 + (s) : min(s0 + (s), S - 1))
#define READ_ALL(GET)                                                                   \
    {                                                                                   \
        _Pragma("unroll") for (int c = 0; c < CB; c++)                                  \
            _Pragma("unroll") for (int s = 0; s < SB; s++) {                            \
                const INDEX at = PLANE_OF(c) * (H * W) + origin + r * DR * W + TAP(s) * DS; \
                GET(xv[c][s], at, LANES_READ(rows, cols, r, TAP(s)))                    \
            }                                                                           \
    }

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TX, x), CBUF(TD, dy), BUF(TY, y)) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)PARTS * G * KT * CT * R * ST) return;
    const int s0 = item % ST * SB, r = item / ST % R, c0 = item / (ST * R) % CT * CB;
    const int k0 = item / (ST * R * CT) % KT * KB, g = item / (ST * R * CT * KT) % G;
    const int part = item / (ST * R * CT * KT * G);

    V acc[KB][CB][SB];
#pragma unroll
    for (int i = 0; i < KB; i++)
#pragma unroll
        for (int c = 0; c < CB; c++)
#pragma unroll
            for (int s = 0; s < SB; s++) acc[i][c][s] = (V)(0.0f);

    for (int t = part * SHARE; t < min((part + 1) * SHARE, TOTAL); t++) {
        const int line = t % LINES;
        const INDEX image = t / LINES * G + g;
        if (!LINE_READS(line, r)) continue;
        VI oh = LANE_ROW(line, 0), ow = LANE_COL(0);
        for (int vector = 0; vector < VECTORS; vector++) {
            const int q = START(vector);
            const bool shifted = LINE % VW && vector == VECTORS - 1;
            if (shifted) {
                oh = LANE_ROW(line, q);
                ow = LANE_COL(q);
            }
            const VI rows = oh * SH + H0, cols = ow * SW + W0;
            const INDEX origin = ORIGIN(line, q);
            V dv[KB], xv[CB][SB];
#pragma unroll
            for (int i = 0; i < KB; i++) {
                const INDEX k = image * KG + (KG % KB == 0 ? k0 + i : min(k0 + i, KG - 1));
                const INDEX at = k * (OH * OW) + line * OW + q;
                if (LINE >= VW || at + VW <= (INDEX)N * G * KG * (OH * OW)) {
                    dv[i] = LOAD(TD, VW, AT(dy) + at);
                } else {  // the last lines of all
                    float lane[VW];
                    for (int l = 0; l < VW; l++)
                        lane[l] = l < LANES_USED ? LOAD(TD, 1, AT(dy) + at + l) : 0.0f;
                    dv[i] = LOAD(float, VW, lane);
                }
            }
            if (SAFE(PLANE_OF(0) * (H * W) + origin, PLANE_OF(CB - 1) * (H * W) + origin))
                READ_ALL(FETCH)
            else
                READ_ALL(FETCH_LANES)
            if (shifted) {
                const VI number = q + LANE_NUMBERS(VW);
                const VI fresh = number >= (VI)(vector * VW) & number < (VI)(LINE);
#pragma unroll
                for (int i = 0; i < KB; i++) dv[i] = select((V)(0.0f), dv[i], fresh);
#pragma unroll
                for (int c = 0; c < CB; c++)
#pragma unroll
                    for (int s = 0; s < SB; s++) xv[c][s] = select((V)(0.0f), xv[c][s], fresh);
            }
#pragma unroll
            for (int c = 0; c < CB; c++)
#pragma unroll
                for (int s = 0; s < SB; s++)
#pragma unroll
                    for (int i = 0; i < KB; i++)
                        acc[i][c][s] = fma(dv[i], xv[c][s], acc[i][c][s]);
            ADVANCE(oh, ow)
        }
    }

#pragma unroll
    for (int i = 0; i < KB; i++)
#pragma unroll
        for (int c = 0; c < CB; c++)
#pragma unroll
            for (int s = 0; s < SB; s++)
                if (k0 + i < KG && c0 + c < CG && s0 + s < S) {
                    FINISH(1, g * KG + k0 + i, c0 + c, r, s0 + s, LANES(VW, acc[i][c][s]))
                }
}
