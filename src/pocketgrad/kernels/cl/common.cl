// Shared by all kernels; once at the head of every program.
//
// A tensor argument is a buffer and an element offset: BUF(float, x) in the signature, AT(x) for
// the pointer. The arena is one buffer, so offsets and not sub-buffers tell tensors apart.
// CBUF and BUF promise that no other argument overlaps (never used where a step works in place).

#pragma OPENCL FP_CONTRACT ON

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#define CBUF(T, x) global const T* restrict x##_base, const ulong x##_off
#define BUF(T, x) global T* restrict x##_base, const ulong x##_off
#define SHARED_BUF(T, x) global T* x##_base, const ulong x##_off
#define AT(x) (x##_base + x##_off)

// Floats of a vector width: VEC(float, 1) is float, VEC(float, 8) is float8.
#define VEC_1(T) T
#define VEC_2(T) T##2
#define VEC_4(T) T##4
#define VEC_8(T) T##8
#define VEC_16(T) T##16
#define VEC(T, n) CAT(VEC_, n)(T)

// vload_halfN and vstore_halfN promise to need the alignment of one half only. PoCL 3.1 compiles them
// to aligned accesses nevertheless, which crash; so the bits travel as ushorts.
#define HALVES(n)                                                                                  \
    float##n load_half_##n(global const half* p)                                                   \
    {                                                                                              \
        const ushort##n bits = vload##n(0, (global const ushort*)p);                               \
        return vload_half##n(0, (const half*)&bits);                                               \
    }                                                                                              \
    void store_half_##n(float##n v, global half* p)                                                \
    {                                                                                              \
        ushort##n bits;                                                                            \
        vstore_half##n(v, 0, (half*)&bits);                                                        \
        vstore##n(bits, 0, (global ushort*)p);                                                     \
    }
HALVES(2) HALVES(4) HALVES(8) HALVES(16)

// Loads and stores of n neighbours at p as float registers, by storage type: LOAD(float, 4, p).
#define LOAD_float_1(p) (*(p))
#define LOAD_float_2(p) vload2(0, p)
#define LOAD_float_4(p) vload4(0, p)
#define LOAD_float_8(p) vload8(0, p)
#define LOAD_float_16(p) vload16(0, p)
#define STORE_float_1(v, p) (*(p) = (v))
#define STORE_float_2(v, p) vstore2(v, 0, p)
#define STORE_float_4(v, p) vstore4(v, 0, p)
#define STORE_float_8(v, p) vstore8(v, 0, p)
#define STORE_float_16(v, p) vstore16(v, 0, p)
#define LOAD_half_1(p) vload_half(0, p)
#define LOAD_half_2(p) load_half_2(p)
#define LOAD_half_4(p) load_half_4(p)
#define LOAD_half_8(p) load_half_8(p)
#define LOAD_half_16(p) load_half_16(p)
#define STORE_half_1(v, p) vstore_half(v, 0, p)
#define STORE_half_2(v, p) store_half_2(v, p)
#define STORE_half_4(v, p) store_half_4(v, p)
#define STORE_half_8(v, p) store_half_8(v, p)
#define STORE_half_16(v, p) store_half_16(v, p)
#define LOAD(T, n, p) CAT(CAT(LOAD_, T), CAT(_, n))(p)
#define STORE(T, n, v, p) CAT(CAT(STORE_, T), CAT(_, n))(v, p)

// The sum of the n lanes of a float vector, always in the same order.
#define LANES_1(v) (v)
#define LANES_2(v) ((v).lo + (v).hi)
#define LANES_4(v) LANES_2((v).lo + (v).hi)
#define LANES_8(v) LANES_4((v).lo + (v).hi)
#define LANES_16(v) LANES_8((v).lo + (v).hi)
#define LANES(n, v) CAT(LANES_, n)(v)

// The number of each lane, as an int vector of n.
#define LANE_NUMBERS_1 0
#define LANE_NUMBERS_2 (int2)(0, 1)
#define LANE_NUMBERS_4 (int4)(0, 1, 2, 3)
#define LANE_NUMBERS_8 (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#define LANE_NUMBERS_16 (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define LANE_NUMBERS(n) CAT(LANE_NUMBERS_, n)

// Selection and remainder in expressions; conditions are 0 or 1 in scalars, masks in vectors.
#define WHERE_1(c, a, b) ((c) ? (a) : (b))
#define WHERE_V(c, a, b) select(b, a, c)
#define NOT(c) ((c) == 0)
#define MOD_F(x, y) ((x) - (y) * floor((x) / (y)))
#define MOD_I(x, y) ((((x) % (y)) + (y)) % (y))

// Philox 4x32 with 7 rounds, first word, on the counter (c, step, stream, 0) with key (seed, 0),
// as 24 random bits in [0, 1); U is uint or a vector of it. As ops/source.py defines it.
#define PHILOX_ROUND(U)                                                                            \
    {                                                                                              \
        const U h0 = mul_hi(c0, (U)(0xD2511F53u)), l0 = c0 * 0xD2511F53u;                          \
        const U h1 = mul_hi(c2, (U)(0xCD9E8D57u)), l1 = c2 * 0xCD9E8D57u;                          \
        c0 = h1 ^ c1 ^ k0, c1 = l1, c2 = h0 ^ c3 ^ k1, c3 = l0;                                    \
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;                                                      \
    }
#define UNIFORM(U, FLOAT, CONVERT, out, counter, step, stream, seed)                               \
    FLOAT out;                                                                                     \
    {                                                                                              \
        U c0 = counter, c1 = (U)((uint)(step)), c2 = (U)(stream##u), c3 = (U)(0u);                 \
        uint k0 = (uint)(seed), k1 = 0u;                                                           \
        PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U) PHILOX_ROUND(U)            \
        PHILOX_ROUND(U) PHILOX_ROUND(U) out = CONVERT(c0 >> 8) * 0x1p-24f;                         \
    }
