// Pooling in two dimensions, forward: the largest element of each window, or their average.
//
// Layout, p = n * C + c being a plane, in elements:
//   x[n,c,h,w]      at n * XN + c * XC + h * XH + w * XW
//   y[n,c,i,j]      at n * YN + c * YC + i * YH + j * YW
//   index[n,c,i,j]  at (p * OH + i) * OW + j: where the maximum was, as TAP says
// Output i reads rows START_H + r * DH, r from FIRST_H to END_H; output j columns likewise.
//
// A work-item computes SEG columns of RPT rows of y (rows counted over all planes), VW columns at a
// time where all their windows lie inside x: columns INNER_FIRST to INNER_END. The last vector of a
// row is moved back to end with it, computing a few columns twice. Groups are independent.
//
// Sizes: any; windows hold at least one element. VW > 1 needs LANE (elements of x from one window to
// the next) to be 1 or 2, and YW to be 1. TVW > 1 needs DW * XW to be 1.
//
//   MAX      1 largest, 0 average          INDEX  1: store index (MAX only)
//   VALUE    1: store y, as always but for a MAX whose index alone is read
//   XT, YT   storage types                 OH OW W C LINES  sizes; LINES = planes * OH
//   VW       outputs per vector (1)        TVW    taps per vector, for wide average windows (1)
//   SEG      columns per item (OW)         SEGS   segments of a row: ceil(OW / SEG)
//   RPT      rows per item (1)
//   TAP      what index stores of tap (r, s): r * S + s, or its position in the plane
//   TAPSTEP  how TAP grows from one output column to the next
//   START_* FIRST_* END_* EXTENT_*         window geometry: expressions in i (H) and j (W)

// VW numbers at p, LANE apart. The second load of LANE 2 starts one early: it must not pass the end.
#if LANE == 1
#define WINDOWS(p) LOAD(XT, VW, p)
#else
#define WINDOWS(p) (VEC(float, VW))(LOAD(XT, VW, p).even, LOAD(XT, VW, (p) + VW - 1).odd)
#endif

kernel void ENTRY(CBUF(XT, x)
#if VALUE
                  , BUF(YT, y)
#endif
#if INDEX
                  , BUF(int, index)
#endif
) {
  const int item = get_global_id(0);
  const int j_first = item % SEGS * SEG, j_end = min(OW, j_first + SEG);
  const int row_first = item / SEGS * RPT, row_end = min(LINES, row_first + RPT);
#if VW > 1
  const int inner_first = max(j_first, INNER_FIRST), inner_end = min(j_end, INNER_END);
#endif

  for (int row = row_first; row < row_end; row++) {
    const int i = row % OH, n = row / OH / C, c = row / OH % C;
    const int first_h = START_H, r_first = FIRST_H, r_end = END_H;
    global const XT* in = AT(x) + (long)n * XN + (long)c * XC + first_h * (long)XH;
#if VALUE
    global YT* out = AT(y) + (long)n * YN + (long)c * YC + i * (long)YH;
#endif
#if INDEX
    global int* where = AT(index) + (size_t)row * OW;
#endif
    int column = j_first;
    while (column < j_end) {
#if VW > 1
      if (column >= inner_first && column < inner_end && inner_end - inner_first >= VW) {
        const int j = min(column, inner_end - VW), first_w = START_W;
#if MAX
        VEC(float, VW) best = -INFINITY;
        int r = r_first, s = 0;
        VEC(int, VW) found = TAP;
        for (; r < r_end; r++)
          for (s = 0; s < TAPS_W; s++) {
            const VEC(float, VW) v = WINDOWS(in + r * DH * XH + (first_w + s * DW) * XW);
            const VEC(int, VW) better = (v > best) | (v != v);
            best = better ? v : best;
            found = better ? (VEC(int, VW))(TAP) : found;
          }
#if VALUE
        STORE(YT, VW, best, out + j);
#endif
#if INDEX
        CAT(vstore, VW)(found + TAPSTEP * LANE_NUMBERS(VW), 0, where + j);
#endif
#else
        VEC(float, VW) sum = 0.0f;
        for (int r = r_first; r < r_end; r++)
          for (int s = 0; s < TAPS_W; s++) sum += WINDOWS(in + r * DH * XH + (first_w + s * DW) * XW);
        STORE(YT, VW, sum / (float)(EXTENT_H * (EXTENT_W)), out + j);
#endif
        column = j + VW;
        continue;
      }
#endif
      const int j = column++, first_w = START_W, s_first = FIRST_W, s_end = END_W;
#if MAX
      float best = -INFINITY;
      int r = r_first, s = s_first;
      int found = TAP;
      for (; r < r_end; r++)
        for (s = s_first; s < s_end; s++) {
          const float v = LOAD(XT, 1, in + r * DH * XH + (first_w + s * DW) * XW);
          if (v > best || isnan(v)) {
            best = v;
            found = TAP;
          }
        }
#if VALUE
      STORE(YT, 1, best, out + j * YW);
#endif
#if INDEX
      where[j] = found;
#endif
#else
      float sum = 0.0f;
#if TVW > 1
      VEC(float, TVW) wide = 0.0f;
#endif
      for (int r = r_first; r < r_end; r++) {
        global const XT* line = in + r * DH * XH + first_w * XW;
        int s = s_first;
#if TVW > 1
        for (; s + TVW <= s_end; s += TVW) wide += LOAD(XT, TVW, line + s);
#endif
        for (; s < s_end; s++) sum += LOAD(XT, 1, line + s * DW * XW);
      }
#if TVW > 1
      sum += LANES(TVW, wide);
#endif
      STORE(YT, 1, sum / (float)(EXTENT_H * (EXTENT_W)), out + j * YW);
#endif
    }
  }
}

#undef WINDOWS
