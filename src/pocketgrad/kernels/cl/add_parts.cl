// Adds the parts of a sum: y[i] = part[0, i] + part[1, i] + … in this order.
//
// Element (p, i) of part is AT(part)[p*SIZE + i]; y is dense. An item adds VW neighbours; the last
// begins at SIZE-VW and stores its new lanes only.
//
// SIZE     elements of y, at least VW     PARTS   how many parts      TY  storage: float or half
// VW       neighbours of an item: 1 2 4 8 16                          (default: the device's width)
// WGS      items of a work-group                              (default 1; GPU 64)
// INDEX    int, or long where a tensor has 2^31 elements

kernel __attribute__((reqd_work_group_size(WGS, 1, 1))) void ENTRY(CBUF(float, part), BUF(TY, y)) {
    const INDEX item = get_global_id(0);
    if (item >= (SIZE + VW - 1) / VW) return;
    const INDEX i = min(item * VW, (INDEX)(SIZE - VW));
    VEC(float, VW) sum = LOAD(float, VW, AT(part) + i);
    for (INDEX p = 1; p < PARTS; p++) sum += LOAD(float, VW, AT(part) + p * SIZE + i);
    if (i == item * VW) {
        STORE(TY, VW, sum, AT(y) + i);
    } else {
        float lane[VW];
        STORE(float, VW, sum, lane);
        for (int l = (int)(item * VW - i); l < VW; l++) STORE(TY, 1, lane[l], AT(y) + i + l);
    }
}
