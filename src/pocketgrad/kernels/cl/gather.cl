// Elements along an axis: y[o, k, i] = x[o, index[o, k, i], i], or zero where it is out of range.
//
// Layout, all dense: x[o, a, i] at (o * A + a) * I + i; y and index [o, k, i] at (o * K + k) * I + i,
// o counting the axes before and i those behind. Elements are moved as whole numbers of their size.
//
// A work-item moves SEG elements of RPT lines of y; a line is one (o, k), I long.
//
//   T       unsigned type of an element's size      IT      int or long, of the indices
//   A K     length of the axis in x, in y
//   LINES   o times K     LENGTH  I
//   SEG (LENGTH)          SEGS    segments of a line: ceil(LENGTH / SEG)      RPT (1)

kernel void ENTRY(CBUF(T, x), CBUF(IT, index), BUF(T, y)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int line = item / SEGS * RPT; line < min(LINES, (item / SEGS + 1) * RPT); line++) {
    global const T* from = AT(x) + (size_t)(line / K) * A * LENGTH;
    const size_t to = (size_t)line * LENGTH;
    for (int i = first; i < end; i++) {
      const IT a = AT(index)[to + i];
      AT(y)[to + i] = a >= 0 && a < A ? from[(size_t)a * LENGTH + i] : 0;
    }
  }
}
