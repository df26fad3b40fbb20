// Gradient of resampling: gx[o, h, r] = sum of ct[o, i, r] * weight(i, h) over the outputs i that read
// h, in order; the weight is 1 - part where h is the lower neighbour of i, plus part where the upper.
//
// Layout, dense: ct[o, i, r] at (o * S + i) * R + r, gx[o, h, r] at (o * H + h) * R + r.
// Output i lies at POSITION / DEN between its neighbours; FROM to PAST may read h.
//
// Where axes lie behind, a line is one (o, h), R long: vectors of VW. Where the axis is the last
// (R = 1), a line is one o, H long, one by one. A work-item computes SEG elements of RPT lines. With
// OWN these are whole lines along the axis: it zeroes them and adds each cotangent to both neighbours,
// which needs one position per cotangent instead of several per element.
//
//   H S R    lengths: the axis in gx and in ct, and what lies behind it
//   POSITION an expression in i          DEN         what it counts in
//   FROM PAST  expressions in h          NEAREST     1: part is 0
//   OWN      needs R = 1, SEG = LENGTH and float gx
//   CT, XT   storage types               LINES LENGTH  o * H lines of R, or o lines of H
//   VW (1)   SEG (LENGTH)   SEGS  segments of a line: ceil(LENGTH / SEG)    RPT (1)

#define WEIGHT(weight)                                                              \
  const int at = POSITION, low = at / DEN;                                          \
  const float part = NEAREST ? 0.0f : (float)(at % DEN) / (float)DEN;               \
  const float weight = (low == h ? 1.0f - part : 0.0f) + (min(low + 1, H - 1) == h ? part : 0.0f);

kernel void ENTRY(CBUF(CT, ct), BUF(XT, gx)) {
  const int item = get_global_id(0);
  const int first = item % SEGS * SEG, end = min(LENGTH, first + SEG);
  for (int line = item / SEGS * RPT; line < min(LINES, (item / SEGS + 1) * RPT); line++) {
    global XT* to = AT(gx) + (size_t)line * LENGTH;
#if R > 1
    const int h = line % H, i_first = FROM, i_end = PAST;
    global const CT* from = AT(ct) + (size_t)(line / H) * S * R;
    int r = first;
#if VW > 1
    for (; r + VW <= end; r += VW) {
      VEC(float, VW) sum = 0.0f;
      for (int i = i_first; i < i_end; i++) {
        WEIGHT(weight)
        sum += LOAD(CT, VW, from + (size_t)i * R + r) * weight;
      }
      STORE(XT, VW, sum, to + r);
    }
#endif
    for (; r < end; r++) {
      float sum = 0.0f;
      for (int i = i_first; i < i_end; i++) {
        WEIGHT(weight)
        sum += LOAD(CT, 1, from + (size_t)i * R + r) * weight;
      }
      STORE(XT, 1, sum, to + r);
    }
#else
    global const CT* from = AT(ct) + (size_t)line * S;
#if OWN
    for (int h = 0; h < H; h++) to[h] = 0.0f;
    for (int i = 0; i < S; i++) {
      const int at = POSITION, low = at / DEN;
      const float v = LOAD(CT, 1, from + i);
      const float part = NEAREST ? 0.0f : (float)(at % DEN) / (float)DEN;
      to[low] += v * (1.0f - part);
      if (!NEAREST) to[min(low + 1, H - 1)] += v * part;
    }
#else
    for (int h = first; h < end; h++) {
      float sum = 0.0f;
      for (int i = FROM; i < PAST; i++) {
        WEIGHT(weight)
        sum += LOAD(CT, 1, from + i) * weight;
      }
      STORE(XT, 1, sum, to + h);
    }
#endif
#endif
  }
}

#undef WEIGHT
