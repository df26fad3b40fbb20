// Pooling in two dimensions, forward, of images whose channels lie side by side: lanes along them.
//
// Layout, in elements; neighbouring channels are neighbours, pixels are a pitch of at least C apart:
//   x[n,c,h,w]      at n * XN + h * XH + w * XW + c
//   y[n,c,i,j]      at n * YN + i * YH + j * YW + c
//   index[n,c,i,j]  at n * IN + i * IH + j * IW + c: where the maximum was, as TAP says
// Output i reads rows START_H + r * DH, r from FIRST_H to END_H; output j columns likewise.
//
// A line is a row of y: OW pixels, each a whole number of vectors, the last of which is moved back to
// end with the channels, computing a few twice. A work-item computes SEG elements of RPT lines.
//
// Sizes: any; windows hold at least one element. VW is at most C.
//
//   MAX      1 largest, 0 average          INDEX  1: store index (MAX only)
//   VALUE    1: store y, as always but for a MAX whose index alone is read
//   TX, TY, TI   storage types             OH OW C  sizes
//   PIXEL    elements of a pixel, rounded up to whole vectors
//   LINES    N * OH                        LENGTH   OW * PIXEL
//   VW (1)   channels per vector           SEG (LENGTH)   SEGS   RPT (1)
//   PUT(v, p)  store the vector of ints v at p
//   TAP      what index stores of tap (r, s): r * S + s, or its position in the plane
//   START_* FIRST_* END_* EXTENT_*         window geometry: expressions in i (H) and j (W)

kernel void ENTRY(CBUF(TX, x)
#if VALUE
                  , BUF(TY, y)
#endif
#if INDEX
                  , BUF(TI, index)
#endif
) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, past = min(LENGTH, first + SEG);
  for (int row = item / SEGS * RPT; row < min(LINES, (item / SEGS + 1) * RPT); row++) {
    const int i = row % OH, n = row / OH;
    const int first_h = START_H, r_first = FIRST_H, r_end = END_H;
    global const TX* in = AT(x) + (long)n * XN + first_h * (long)XH;
    int at = first;
    while (at < past) {
      const int j = at / PIXEL, pixel = j * PIXEL, end = min(past, pixel + PIXEL);
      const int first_w = START_W, s_first = FIRST_W, s_end = END_W;
      for (; at < end; at += VW) {
        const int c = min(at - pixel, C - VW);
        global const TX* corner = in + first_w * XW + c;
#if MAX
        VEC(float, VW) best = -INFINITY;
        int r = r_first, s = s_first;
        VEC(int, VW) found = TAP;
        for (; r < r_end; r++)
          for (s = s_first; s < s_end; s++) {
            const VEC(float, VW) v = LOAD(TX, VW, corner + r * DH * XH + s * DW * XW);
            const VEC(int, VW) better = (v > best) | (v != v);
            best = better ? v : best;
            found = better ? (VEC(int, VW))(TAP) : found;
          }
#if VALUE
        STORE(TY, VW, best, AT(y) + (long)n * YN + i * (long)YH + j * YW + c);
#endif
#if INDEX
        PUT(found, AT(index) + (long)n * IN + i * (long)IH + j * IW + c)
#endif
#else
        VEC(float, VW) sum = 0.0f;
        for (int r = r_first; r < r_end; r++)
          for (int s = s_first; s < s_end; s++)
            sum += LOAD(TX, VW, corner + r * DH * XH + s * DW * XW);
        sum /= (float)(EXTENT_H * (EXTENT_W));
        STORE(TY, VW, sum, AT(y) + (long)n * YN + i * (long)YH + j * YW + c);
#endif
      }
    }
  }
}
