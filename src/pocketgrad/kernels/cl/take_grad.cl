// Gradient of reading rows: gt[v, d] = sum of ct[i, d] over the i with index[i] == v, in their order.
//
// Layout, all dense: index[i] at i, ct[i, d] at i * LENGTH + d, gt[v, d] at v * LENGTH + d.
//
// A work-item owns SEG columns of RPT rows of gt. It zeroes them, then walks all N indices and adds
// where the index is one of its rows. Nobody else writes there: no atomics, always the same sum.
// Reading all indices in every item is cheap while a row has many columns and N is far below V * D.
//
//   CT      storage type of ct; gt is float         IT      int or long, of the indices
//   N       indices     LINES   rows of gt     LENGTH  columns
//   VW (1)  SEG (LENGTH)  SEGS    segments of a row: ceil(LENGTH / SEG)   RPT (1)

kernel void ENTRY(CBUF(IT, index), CBUF(CT, ct), BUF(float, gt)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  const int v_first = item / SEGS * RPT, v_end = min(LINES, v_first + RPT);
  for (int v = v_first; v < v_end; v++) {
    global float* to = AT(gt) + (size_t)v * LENGTH;
    int d = first;
#if VW > 1
    for (; d + VW <= end; d += VW) STORE(float, VW, (VEC(float, VW))(0.0f), to + d);
#endif
    for (; d < end; d++) to[d] = 0.0f;
  }
  for (int i = 0; i < N; i++) {
    const IT v = AT(index)[i];
    if (v < v_first || v >= v_end) continue;
    global const CT* from = AT(ct) + (size_t)i * LENGTH;
    global float* to = AT(gt) + (size_t)v * LENGTH;
    int d = first;
#if VW > 1
    for (; d + VW <= end; d += VW)
      STORE(float, VW, LOAD(float, VW, to + d) + LOAD(CT, VW, from + d), to + d);
#endif
    for (; d < end; d++) to[d] += LOAD(CT, 1, from + d);
  }
}
