// Winograd's transforms for 3x3 taps, F(2x2) and F(4x4): Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2015). Matrices of points 0, 1, -1 (and 2, -2 for TILE 4) and infinity.
//
// A tile of TILE x TILE results comes from PIXELS x PIXELS numbers; both are carried to POINTS points:
//
//   y = A^T [ (G w G^T) * (B^T x B) ] A            * is the product number by number
//
// Each macro below carries a line: T is the type of a number, perhaps a vector, d the line and o the
// carried one. CARRY does it along columns, then along rows. Constants are folded into fma.
//
// TILE   2 or 4, the results of a tile along each axis

#define PIXELS (TILE + 2)
#define POINTS (PIXELS * PIXELS)
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

// The IN x IN numbers GET(i, j) as OUT x OUT numbers o, each given to PUT(a, b, o).
#define CARRY(T, LINE, OUT, IN, GET, PUT)                                                          \
    {                                                                                              \
        T once[OUT][IN];                                                                           \
        EACH(j, IN) {                                                                              \
            T d[IN], o[OUT];                                                                       \
            EACH(i, IN) d[i] = GET(i, j);                                                          \
            LINE(T, d, o)                                                                          \
            EACH(a, OUT) once[a][j] = o[a];                                                        \
        }                                                                                          \
        EACH(a, OUT) {                                                                             \
            T o[OUT];                                                                              \
            LINE(T, once[a], o)                                                                    \
            EACH(b, OUT) { PUT(a, b, o[b]) }                                                       \
        }                                                                                          \
    }

#if TILE == 4
// x: PIXELS to PIXELS
#define B_LINE(T, d, o)                                                                            \
    {                                                                                              \
        const T p = d[4] - 4.0f * d[2], q = d[3] - 4.0f * d[1];                                    \
        const T r = d[4] - d[2], s = d[3] - d[1];                                                  \
        o[0] = 4.0f * d[0] + (d[4] - 5.0f * d[2]);                                                 \
        o[1] = p + q, o[2] = p - q;                                                                \
        o[3] = r + 2.0f * s, o[4] = r - 2.0f * s;                                                  \
        o[5] = 4.0f * d[1] + (d[5] - 5.0f * d[3]);                                                 \
    }
// w: 3 to PIXELS
#define G_LINE(T, d, o)                                                                            \
    {                                                                                              \
        const T p = (d[0] + d[2]) * (-1 / 6.0f), q = d[1] * (1 / 6.0f);                            \
        const T r = d[0] * (1 / 24.0f) + d[2] * (1 / 6.0f), s = d[1] * (1 / 12.0f);                \
        o[0] = d[0] * 0.25f;                                                                       \
        o[1] = p - q, o[2] = p + q;                                                                \
        o[3] = r + s, o[4] = r - s;                                                                \
        o[5] = d[2];                                                                               \
    }
// products: PIXELS to TILE
#define A_LINE(T, d, o)                                                                            \
    {                                                                                              \
        const T p = d[1] + d[2], q = d[1] - d[2], r = d[3] + d[4], s = d[3] - d[4];                \
        o[0] = d[0] + p + r;                                                                       \
        o[1] = q + 2.0f * s;                                                                       \
        o[2] = p + 4.0f * r;                                                                       \
        o[3] = q + 8.0f * s + d[5];                                                                \
    }
// the cotangent of y: TILE to PIXELS, A_LINE backwards
#define A_BACK(T, d, o)                                                                            \
    {                                                                                              \
        const T p = d[0] + d[2], q = d[1] + d[3];                                                  \
        const T r = d[0] + 4.0f * d[2], s = 2.0f * d[1] + 8.0f * d[3];                             \
        o[0] = d[0];                                                                               \
        o[1] = p + q, o[2] = p - q;                                                                \
        o[3] = r + s, o[4] = r - s;                                                                \
        o[5] = d[3];                                                                               \
    }
// the cotangent of w: PIXELS to 3, G_LINE backwards
#define G_BACK(T, d, o)                                                                            \
    {                                                                                              \
        const T p = (d[1] + d[2]) * (-1 / 6.0f), r = d[3] + d[4];                                  \
        o[0] = d[0] * 0.25f + p + r * (1 / 24.0f);                                                 \
        o[1] = (d[2] - d[1]) * (1 / 6.0f) + (d[3] - d[4]) * (1 / 12.0f);                           \
        o[2] = p + r * (1 / 6.0f) + d[5];                                                          \
    }
#else
#define B_LINE(T, d, o)                                                                            \
    o[0] = d[0] - d[2], o[1] = d[1] + d[2], o[2] = d[2] - d[1], o[3] = d[1] - d[3];
#define G_LINE(T, d, o)                                                                            \
    {                                                                                              \
        const T p = (d[0] + d[2]) * 0.5f, q = d[1] * 0.5f;                                         \
        o[0] = d[0], o[1] = p + q, o[2] = p - q, o[3] = d[2];                                      \
    }
#define A_LINE(T, d, o) o[0] = d[0] + d[1] + d[2], o[1] = d[1] - d[2] - d[3];
#define A_BACK(T, d, o) o[0] = d[0], o[1] = d[0] + d[1], o[2] = d[0] - d[1], o[3] = -d[1];
#define G_BACK(T, d, o)                                                                            \
    {                                                                                              \
        const T p = (d[1] + d[2]) * 0.5f;                                                          \
        o[0] = d[0] + p, o[1] = (d[1] - d[2]) * 0.5f, o[2] = p + d[3];                             \
    }
#endif
