// Pooling in two dimensions, gradient: from the cotangent ct of the output to gx of the input.
//
// Layout, p = n * C + c being a plane, in elements:
//   ct[n,c,i,j]     at n * CN + c * CC + i * CH + j * CW
//   index[n,c,i,j]  at (p * OH + i) * OW + j: where the maximum was, as the forward kernel wrote it
//   gx[n,c,h,w]     at n * GN + c * GC + h * GH + w
// Input row h is read by outputs FROM_H to PAST_H (some of which may pass over it with a dilation).
//
// Two ways, both without atomics and always adding in the same order:
//   OWN 0  A work-item computes SEG columns of RPT rows of gx, and for each element looks at all
//          windows that read it. Many small items: for GPUs, and for few planes.
//   OWN 1  A work-item zeroes RPT planes of gx, then adds each cotangent where its maximum was, or
//          to all its window. Less work when windows overlap; gx must be float, not half.
// With OWN 0 three frequent cases run VW columns at a time:
//   PAIRS  windows of 2 columns every 2 columns: a vector of ct is doubled into a vector of gx
//   SLIDE  windows at every column: one shifted vector of ct for each tap
//   SAME   one window covers all columns: all elements of a row are equal
// For the first two INNER_FIRST to INNER_END are the columns that only whole windows read.
//
//   MAX      1 largest, 0 average          CT, XT  storage types of ct and gx
//   H W OH OW C LINES   sizes; LINES = planes * H, with OWN planes
//   TAP      what index holds for tap (r, s) at (h, w); TAP_R, TAP_S: the tap of the index `at`
//   TAP_LANES  what to add to TAP in each lane; 0 for SLIDE with taps
//   FIRST_START, TAPS_W   where the first window starts along width, and the taps of a whole one
//   START_* EXTENT_* FIRST_* END_*   window geometry: expressions in i (height) and j (width)
//   FROM_* PAST_*                    readers: expressions in h and w
//   VW (1)   elements per vector           SEG (W), SEGS, RPT (1)  see above

kernel void ENTRY(
#if MAX
    CBUF(int, index),
#endif
    CBUF(CT, ct), BUF(XT, gx)) {
  const int item = get_global_id(0);
#if OWN
  for (int p = item * RPT; p < min(LINES, (item + 1) * RPT); p++) {
    const int n = p / C, c = p % C;
    global const CT* from = AT(ct) + (long)n * CN + (long)c * CC;
#if MAX
    global const int* where = AT(index) + (size_t)p * (OH * OW);
#endif
    global XT* to = AT(gx) + (long)n * GN + (long)c * GC;
    for (int h = 0; h < H; h++) {
      int w = 0;
#if VW > 1
      for (; w + VW <= W; w += VW) STORE(XT, VW, (VEC(float, VW))(0.0f), to + h * GH + w);
#endif
      for (; w < W; w++) STORE(XT, 1, 0.0f, to + h * GH + w);
    }
    for (int i = 0; i < OH; i++) {
      const int first_h = START_H, r_first = FIRST_H, r_end = END_H;
      for (int j = 0; j < OW; j++) {
        const int first_w = START_W;
        const float v = LOAD(CT, 1, from + i * CH + j * CW);
#if MAX
        const int at = where[i * OW + j], r = TAP_R, s = TAP_S;
        if (at >= 0 && r >= r_first && r < r_end && s >= FIRST_W && s < END_W)
          to[(first_h + r * DH) * GH + first_w + s * DW] += v;
#else
        const float part = v / (float)(EXTENT_H * (EXTENT_W));
        for (int r = r_first; r < r_end; r++)
          for (int s = FIRST_W; s < END_W; s++)
            to[(first_h + r * DH) * GH + first_w + s * DW] += part;
#endif
      }
    }
  }
#else
  const int w_first = item % SEGS * SEG, w_end = min(W, w_first + SEG);
  for (int row = item / SEGS * RPT; row < min(LINES, (item / SEGS + 1) * RPT); row++) {
    const int h = row % H, p = row / H, n = p / C, c = p % C;
    const int i_first = FROM_H, i_end = PAST_H;
    global const CT* from = AT(ct) + (long)n * CN + (long)c * CC;
#if MAX
    global const int* where = AT(index) + (size_t)p * (OH * OW);
#endif
    global XT* to = AT(gx) + (long)n * GN + (long)c * GC + h * GH;
    int column = w_first;
#if PAIRS || SLIDE
    int inner_first = max(w_first, INNER_FIRST), inner_end = min(w_end, INNER_END);
#endif
#if PAIRS
    // Both are window starts.
    inner_first += (inner_first - INNER_FIRST) & 1, inner_end -= (inner_end - INNER_FIRST) & 1;
#endif
    while (column < w_end) {
#if PAIRS || SLIDE
      if (column >= inner_first && column < inner_end && inner_end - inner_first >= VW) {
        const int w = min(column, inner_end - VW);
        VEC(float, VW) sum = 0.0f;
        for (int i = i_first; i < i_end; i++) {
          const int first_h = START_H, r = (h - first_h) / DH;
          if ((h - first_h) % DH) continue;
#if PAIRS
          const int j = FROM_W, s = 0;
          VEC(float, VW) v;
          v.even = v.odd = LOAD(CT, HALF_VW, from + i * CH + j);
#if MAX
          VEC(int, VW) at;
          at.even = at.odd = CAT(vload, HALF_VW)(0, where + i * OW + j);
          sum += at == TAP + TAP_LANES ? v : (VEC(float, VW))(0.0f);
#else
          sum += v / (float)(EXTENT_H * (EXTENT_W));
#endif
#else
#if MAX
          for (int s = 0; s < TAPS_W; s++) {
            const int j = w - FIRST_START - s * DW;
            const VEC(float, VW) v = LOAD(CT, VW, from + i * CH + j);
            const VEC(int, VW) at = CAT(vload, VW)(0, where + i * OW + j);
            sum += at == TAP + TAP_LANES ? v : (VEC(float, VW))(0.0f);
          }
#else
          const int j = w - FIRST_START;
          VEC(float, VW) line = LOAD(CT, VW, from + i * CH + j);
          for (int s = 1; s < TAPS_W; s++) line += LOAD(CT, VW, from + i * CH + j - s * DW);
          sum += line / (float)(EXTENT_H * (EXTENT_W));
#endif
#endif
        }
        STORE(XT, VW, sum, to + w);
        column = w + VW;
        continue;
      }
#endif
      const int w = column;
      float sum = 0.0f;
      for (int i = i_first; i < i_end; i++) {
        const int first_h = START_H, r = (h - first_h) / DH;
        if ((h - first_h) % DH) continue;
        for (int j = FROM_W; j < PAST_W; j++) {
          const int first_w = START_W, s = (w - first_w) / DW;
          if ((w - first_w) % DW) continue;
          const float v = LOAD(CT, 1, from + i * CH + j * CW);
#if MAX
          if (where[i * OW + j] == TAP) sum += v;
#else
          sum += v / (float)(EXTENT_H * (EXTENT_W));
#endif
        }
      }
#if SAME
      for (; column + VW <= w_end; column += VW)
        STORE(XT, VW, (VEC(float, VW))(sum), to + column);
      for (; column < w_end; column++) STORE(XT, 1, sum, to + column);
#else
      STORE(XT, 1, sum, to + w);
      column++;
#endif
    }
  }
#endif
}
