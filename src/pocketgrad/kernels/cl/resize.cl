// Resampling along one axis: y[o, i, r] = (1 - part) x[o, low, r] + part x[o, low + 1, r].
//
// Layout, dense: x[o, h, r] at (o * H + h) * R + r, y[o, i, r] at (o * S + i) * R + r, o counting the
// axes before and r those behind. Output i lies at POSITION / DEN, low being the whole part.
//
// Where axes lie behind, a line is one (o, i), R long, with one position: vectors of VW. Where the
// axis is the last (R = 1), a line is one o, S long, with a position per element, one by one.
// A work-item computes SEG elements of RPT lines.
//
//   H S R    lengths: the axis in x and in y, and what lies behind it
//   POSITION an expression in i          DEN      what it counts in
//   NEAREST  1: part is 0                XT, YT   storage types
//   LINES LENGTH  o * S lines of R, or o lines of S
//   VW (1)   SEG (LENGTH)   SEGS  segments of a line: ceil(LENGTH / SEG)    RPT (1)

#if NEAREST
#define MIX(N, line) LOAD(XT, N, line)
#else
#define MIX(N, line) LOAD(XT, N, line) * (1.0f - part) + LOAD(XT, N, (line) + high) * part
#endif

kernel void ENTRY(CBUF(XT, x), BUF(YT, y)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int line = item / SEGS * RPT; line < min(LINES, (item / SEGS + 1) * RPT); line++) {
    global YT* to = AT(y) + (size_t)line * LENGTH;
#if R > 1
    const int i = line % S, at = POSITION, low = at / DEN;
    const int high = low + 1 < H ? R : 0;
    const float part = (float)(at % DEN) / (float)DEN;
    global const XT* from = AT(x) + ((size_t)(line / S) * H + low) * R;
    int r = first;
#if VW > 1
    for (; r + VW <= end; r += VW) STORE(YT, VW, MIX(VW, from + r), to + r);
#endif
    for (; r < end; r++) STORE(YT, 1, MIX(1, from + r), to + r);
#else
    global const XT* from = AT(x) + (size_t)line * H;
    for (int i = first; i < end; i++) {
      const int at = POSITION, low = at / DEN;
      const int high = low + 1 < H ? 1 : 0;
      const float part = (float)(at % DEN) / (float)DEN;
      STORE(YT, 1, MIX(1, from + low), to + i);
    }
#endif
  }
}

#undef MIX
