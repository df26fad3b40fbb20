// Adds the parts of a depthwise gradient: dw[k, r, s] = sum over parts, in order, of sums[part, r, s, k].
//
//   sums as depthwise_grad.cl writes it        dw  element (k, 0, r, s) at k*DW_K + r*DW_R + s*DW_S
//
// An item adds the channels of one tap.
//
// K R S VW  as there      PARTS  how many      TY  storage: float or half

#define KB ((K + VW - 1) / VW * VW)

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ENTRY(CBUF(float, sums), BUF(TY, dw)) {
    const int tap = get_global_id(0);
    for (int k = 0; k < K; k++) {
        const int lane = k < KB - VW ? k : k + KB - K;
        float sum = 0.0f;
        for (int part = 0; part < PARTS; part++) sum += AT(sums)[(part * (R * S) + tap) * KB + lane];
        STORE(TY, 1, sum, AT(dw) + k * DW_K + tap / S * DW_R + tap % S * DW_S);
    }
}
