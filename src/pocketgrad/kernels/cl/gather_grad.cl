// Gradient of gather: gx[o, a, i] = sum of ct[o, k, i] over the k with index[o, k, i] == a, in order.
//
// Layout, all dense: gx[o, a, i] at (o * A + a) * I + i; ct and index [o, k, i] at (o * K + k) * I + i.
//
// A work-item owns SEG columns i of RPT whole blocks o of gx: it zeroes them, then adds each cotangent
// where it belongs. Nobody else writes there: no atomics, always the same sum.
//
//   CT      storage type of ct; gx is float         IT      int or long, of the indices
//   A K     length of the axis in gx, in ct
//   LINES   blocks        LENGTH  I
//   SEG (LENGTH)          SEGS    segments of a line: ceil(LENGTH / SEG)      RPT (1)

kernel void ENTRY(CBUF(IT, index), CBUF(CT, ct), BUF(float, gx)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int o = item / SEGS * RPT; o < min(LINES, (item / SEGS + 1) * RPT); o++) {
    global float* to = AT(gx) + (size_t)o * A * LENGTH;
    for (int a = 0; a < A; a++)
      for (int i = first; i < end; i++) to[(size_t)a * LENGTH + i] = 0.0f;
    for (int k = 0; k < K; k++) {
      const size_t from = ((size_t)o * K + k) * LENGTH;
      for (int i = first; i < end; i++) {
        const IT a = AT(index)[from + i];
        if (a >= 0 && a < A) to[(size_t)a * LENGTH + i] += LOAD(CT, 1, AT(ct) + from + i);
      }
    }
  }
}
