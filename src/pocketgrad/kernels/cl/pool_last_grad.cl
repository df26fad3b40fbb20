// Pooling in two dimensions, gradient, of images whose channels lie side by side: from the cotangent
// ct of the output to gx of the input, lanes along channels.
//
// Layout, in elements; neighbouring channels are neighbours, pixels are a pitch of at least C apart:
//   ct[n,c,i,j]     at n * CN + i * CH + j * CW + c
//   index[n,c,i,j]  at n * IN + i * IH + j * IW + c: where the maximum was
//   gx[n,c,h,w]     at n * GN + h * GH + w * GW + c
// Input row h is read by outputs FROM_H to PAST_H (some of which may pass over it with a dilation).
//
// Each element of gx looks at all windows that read it, in order: no atomics. A line is a row of gx: W
// pixels, each a whole number of vectors, the last of which is moved back to end with the channels,
// computing a few twice. A work-item computes SEG elements of RPT lines.
//
//   MAX      1 largest, 0 average          TC, TG, TI  storage types of ct, gx and index
//   H W C    sizes of gx                   TAP  what index holds for tap (r, s) of output (i, j)
//   PIXEL    elements of a pixel, rounded up to whole vectors
//   LINES    N * H                         LENGTH   W * PIXEL
//   VW (1)   channels per vector           SEG (LENGTH)   SEGS   RPT (1)
//   TAKE(p)  the vector of ints at p
//   START_* EXTENT_*                 window geometry: expressions in i (height) and j (width)
//   FROM_* PAST_*                    readers: expressions in h and w

kernel void ENTRY(
#if MAX
    CBUF(TI, index),
#endif
    CBUF(TC, ct), BUF(TG, gx)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, past = min(LENGTH, first + SEG);
  for (int row = item / SEGS * RPT; row < min(LINES, (item / SEGS + 1) * RPT); row++) {
    const int h = row % H, n = row / H;
    const int i_first = FROM_H, i_end = PAST_H;
    int at = first;
    while (at < past) {
      const int w = at / PIXEL, pixel = w * PIXEL, end = min(past, pixel + PIXEL);
      const int j_first = FROM_W, j_end = PAST_W;
      for (; at < end; at += VW) {
        const int c = min(at - pixel, C - VW);
        VEC(float, VW) sum = 0.0f;
        for (int i = i_first; i < i_end; i++) {
          const int first_h = START_H, r = (h - first_h) / DH;
          if ((h - first_h) % DH) continue;
          for (int j = j_first; j < j_end; j++) {
            const int first_w = START_W, s = (w - first_w) / DW;
            if ((w - first_w) % DW) continue;
            const VEC(float, VW) v = LOAD(TC, VW, AT(ct) + (long)n * CN + i * (long)CH + j * CW + c);
#if MAX
            const VEC(int, VW) where = TAKE(AT(index) + (long)n * IN + i * (long)IH + j * IW + c);
            sum += where == TAP ? v : (VEC(float, VW))(0.0f);
#else
            sum += v / (float)(EXTENT_H * (EXTENT_W));
#endif
          }
        }
        STORE(TG, VW, sum, AT(gx) + (long)n * GN + h * (long)GH + w * GW + c);
      }
    }
  }
}
