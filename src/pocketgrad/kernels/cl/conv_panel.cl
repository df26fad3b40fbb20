// Weights as conv_last.cl reads them: panel[g][KT][r][s][c][KB], zeros past the KG channels.
//
// Element (g, k, c, r, s) of w is at g*W_G + k*W_K + c*W_C + r*W_R + s*W_S. An item copies up to VW
// channels of k by VW channels of c. Where neighbours along c are neighbours in w (W_C = 1) they are
// read as vectors and turned in registers; where those along k are (W_K = 1) they are only moved.
//
// G KG CG R S  sizes      KB  channels of a tile, a multiple of VW      TT  storage of w: float or half
// VW           16, or 1 on devices without long vectors                  (default: CPU 16, GPU 1)
// WGS          items of a work-group                                     (default 1; GPU 64)

#define KT ((KG + KB - 1) / KB)
#define KV (KT * KB / VW)
#define CV ((CG + VW - 1) / VW)
#define V VEC(float, VW)
#define WEIGHT(k, c) (from + (k) * (INDEX)W_K + (c) * (INDEX)W_C)

#define LOWER(a, b) (V)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, \
                        a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7)
#define UPPER(a, b) (V)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, \
                        a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf)

kernel __attribute__((reqd_work_group_size(WGS, 1, 1)))
void ENTRY(CBUF(TT, w), BUF(float, panel)) {
    const INDEX item = get_global_id(0);
    if (item >= (INDEX)G * R * S * KV * CV) return;
    const int c0 = item % CV * VW, k0 = item / CV % KV * VW, tap = item / CV / KV % (R * S);
    const int g = item / CV / KV / (R * S);
    global const TT* from = AT(w) + g * (INDEX)W_G + tap / S * W_R + tap % S * W_S;
    global float* to = AT(panel) + (((INDEX)(g * KT + k0 / KB) * (R * S) + tap) * CG + c0) * KB + k0 % KB;
    const int high = min(VW, CG - c0);
#if VW == 16 && W_K == 1
    if (k0 + VW <= KG) {
        for (int c = 0; c < high; c++) STORE(float, VW, LOAD(TT, VW, WEIGHT(k0, c0 + c)), to + c * KB);
        return;
    }
#elif VW == 16 && W_C == 1
    if (k0 + VW <= KG && high == VW) {
        // Four rounds of perfect shuffles turn a square of 16 by 16.
        V a[VW], b[VW];
#pragma unroll
        for (int i = 0; i < VW; i++) a[i] = LOAD(TT, VW, WEIGHT(k0 + i, c0));
#pragma unroll
        for (int round = 0; round < 4; round++) {
#pragma unroll
            for (int i = 0; i < VW / 2; i++) {
                b[2 * i] = LOWER(a[i], a[i + VW / 2]);
                b[2 * i + 1] = UPPER(a[i], a[i + VW / 2]);
            }
#pragma unroll
            for (int i = 0; i < VW; i++) a[i] = b[i];
        }
#pragma unroll
        for (int i = 0; i < VW; i++) STORE(float, VW, a[i], to + i * KB);
        return;
    }
#endif
    for (int c = 0; c < high; c++)
        for (int k = 0; k < VW; k++)
            to[c * KB + k] = k0 + k < KG ? LOAD(TT, 1, WEIGHT(k0 + k, c0 + c)) : 0.0f;
}
