// Rows of a table at indices: y[i, d] = table[index[i], d], or zero where the index is out of range.
//
// Layout: all dense: table[v, d] at v * LENGTH + d, index[i] at i, y[i, d] at i * LENGTH + d. Elements
// are moved as whole numbers of their size, so every type, half too, arrives bit by bit.
//
// A work-item moves SEG columns of RPT rows of y, VW at a time and the rest one by one.
//
//   T       unsigned type of an element's size      IT      int or long, of the indices
//   V       rows of the table     LINES   indices     LENGTH  columns
//   VW (1)  SEG (LENGTH)  SEGS    segments of a row: ceil(LENGTH / SEG)      RPT (1)

kernel void ENTRY(CBUF(T, table), CBUF(IT, index), BUF(T, y)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int i = item / SEGS * RPT; i < min(LINES, (item / SEGS + 1) * RPT); i++) {
    const IT v = AT(index)[i];
    const bool inside = v >= 0 && v < V;
    global const T* from = AT(table) + (inside ? (size_t)v * LENGTH : 0);
    global T* to = AT(y) + (size_t)i * LENGTH;
    int d = first;
    if (inside) {
#if VW > 1
      for (; d + VW <= end; d += VW) CAT(vstore, VW)(CAT(vload, VW)(0, from + d), 0, to + d);
#endif
      for (; d < end; d++) to[d] = from[d];
    } else {
      for (; d < end; d++) to[d] = 0;
    }
  }
}
