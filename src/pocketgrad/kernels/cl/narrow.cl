// float to half, the last launch of a gradient that is summed in float and stored in half.
//
// Layout: both dense. A work-item converts SEG elements of RPT lines of LENGTH.
//
//   VW (1)  SEG (LENGTH)  SEGS    segments of a line: ceil(LENGTH / SEG)      RPT (1)

kernel void ENTRY(CBUF(float, x), BUF(half, y)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int line = item / SEGS * RPT; line < min(LINES, (item / SEGS + 1) * RPT); line++) {
    const size_t at = (size_t)line * LENGTH;
    int i = first;
#if VW > 1
    for (; i + VW <= end; i += VW)
      STORE(half, VW, LOAD(float, VW, AT(x) + at + i), AT(y) + at + i);
#endif
    for (; i < end; i++) STORE(half, 1, AT(x)[at + i], AT(y) + at + i);
  }
}
