// Copies a matrix into panels, the order in which matmul_panel.cl reads it:
//   panel[g, t, k, i] = x[g, t*TILE + i, k]   for i < TILE; zero past X, anything from TILE to PITCH
//
// Element (g, x, k) of the source is at BATCH + x*S_X + k*S_K; BATCH is an expression of g. An item
// copies PART of the K columns of one tile:
//
//        k →                          k →
//   x  [ . . . . ]   TILE rows      [ a0 a1 … aT | b0 b1 … bT | … ]   one panel, PITCH per column
//   ↓  [ . . . . ]      →
//
// Where rows are neighbours (S_X = 1) a column is copied in vectors, else number by number.
//
// G X K TILE  sizes        PITCH  TILE rounded up to whole vectors of VW
// TX          storage: float or half                          PART  columns of an item (default 64)
// INDEX       int, or long where a tensor has 2^31 elements

#define TILES ((X + TILE - 1) / TILE)
#define PARTS ((K + PART - 1) / PART)

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void ENTRY(CBUF(TX, x), BUF(float, panel)) {
    const int item = get_global_id(0);
    const int first = item % PARTS * PART, last = min(first + PART, K), tile = item / PARTS % TILES;
    const INDEX g = item / (PARTS * TILES);
    global const TX* from = AT(x) + BATCH + tile * ((INDEX)TILE * S_X);
    global float* to = AT(panel) + (g * TILES + tile) * ((INDEX)K * PITCH);
    const int rows = X - tile * TILE;
#if S_X == 1
    if (rows >= PITCH) {
        for (int k = first; k < last; k++)
#pragma unroll
            for (int i = 0; i < PITCH; i += VW)
                STORE(float, VW, LOAD(TX, VW, from + k * (INDEX)S_K + i), to + k * PITCH + i);
        return;
    }
#endif
    if (rows >= TILE) {
        for (int k = first; k < last; k++)
#pragma unroll
            for (int i = 0; i < TILE; i++)
                to[k * PITCH + i] = LOAD(TX, 1, from + i * (INDEX)S_X + k * (INDEX)S_K);
    } else {
        for (int k = first; k < last; k++)
            for (int i = 0; i < TILE; i++)
                to[k * PITCH + i] = i < rows ? LOAD(TX, 1, from + i * (INDEX)S_X + k * (INDEX)S_K) : 0.0f;
    }
}
