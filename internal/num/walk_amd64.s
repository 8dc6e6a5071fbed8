//go:build !purego

#include "textflag.h"

// Registers of both walks:
//   R8 s, R9 t             R10 bytes of a row      R11 units
//   BX phi's entry         CX split nodes left
//   SI the node's row      DX its left child's, R14 its right child's
//   R12, R13 the unit's rows of s and t            DI df, R15 the unit's row of it
//   AX bytes within a row

// UNIT finds the offset of the split node's unit, or leaves where there is none.
#define UNIT \
	MOVL  (BX), AX  \
	CMPQ  AX, R11   \
	JAE   outside   \
	IMULQ R10, AX   \
	LEAQ  (R8)(AX*1), R12 \
	LEAQ  (R9)(AX*1), R13 \
	LEAQ  (DX)(R10*1), R14

// SPLIT takes a vector of a node's row to its children's.
#define SPLIT(at, V0, V1, V2) \
	VMOVUPS at(SI)(AX*1), V0      \
	VMULPS  at(R12)(AX*1), V0, V1 \
	VMULPS  at(R13)(AX*1), V0, V2 \
	VMOVUPS V1, at(DX)(AX*1)      \
	VMOVUPS V2, at(R14)(AX*1)

// JOIN takes a vector of the children's rows to the node's, and to df of its unit.
#define JOIN(at, V0, V1, V2) \
	VMOVUPS at(DX)(AX*1), V0      \
	VMOVUPS at(R14)(AX*1), V1     \
	VADDPS  V1, V0, V2            \
	VMOVUPS V2, at(SI)(AX*1)      \
	VMULPS  at(R12)(AX*1), V1, V1 \
	VMULPS  at(R13)(AX*1), V0, V0 \
	VSUBPS  V0, V1, V1            \
	VADDPS  at(R15)(AX*1), V1, V1 \
	VMOVUPS V1, at(R15)(AX*1)

// DESCEND and ASCEND take W bytes of a row at a time.
#define DESCEND(W, VECTORS) \
	MOVQ    node+0(FP), SI  \
	MOVQ    s+8(FP), R8     \
	MOVQ    t+16(FP), R9    \
	MOVQ    phi+24(FP), BX  \
	MOVQ    splits+32(FP), CX \
	MOVQ    n+40(FP), R10   \
	MOVQ    units+48(FP), R11 \
	SHLQ    $2, R10         \
	LEAQ    (SI)(R10*1), DX \
	TESTQ   CX, CX          \
	JZ      done            \
node: \
	UNIT                    \
	XORQ    AX, AX          \
vector: \
	VECTORS                 \
	ADDQ    $W, AX          \
	CMPQ    AX, R10         \
	JLT     vector          \
	ADDQ    R10, SI         \
	LEAQ    (DX)(R10*2), DX \
	ADDQ    $4, BX          \
	DECQ    CX              \
	JNZ     node            \
done: \
	VZEROUPPER              \
	MOVB    $1, ret+56(FP)  \
	RET                     \
outside: \
	VZEROUPPER              \
	MOVB    $0, ret+56(FP)  \
	RET

#define ASCEND(W, VECTORS) \
	MOVQ    df+0(FP), DI    \
	MOVQ    mass+8(FP), SI  \
	MOVQ    s+16(FP), R8    \
	MOVQ    t+24(FP), R9    \
	MOVQ    phi+32(FP), BX  \
	MOVQ    splits+40(FP), CX \
	MOVQ    n+48(FP), R10   \
	MOVQ    units+56(FP), R11 \
	SHLQ    $2, R10         \
	TESTQ   CX, CX          \
	JZ      done            \
	LEAQ    -4(BX)(CX*4), BX \
	MOVQ    CX, AX          \
	DECQ    AX              \
	IMULQ   R10, AX         \
	LEAQ    (SI)(AX*2), DX  \
	ADDQ    R10, DX         \
	ADDQ    AX, SI          \
node: \
	UNIT                    \
	LEAQ    (DI)(AX*1), R15 \
	XORQ    AX, AX          \
vector: \
	VECTORS                 \
	ADDQ    $W, AX          \
	CMPQ    AX, R10         \
	JLT     vector          \
	SUBQ    R10, SI         \
	SUBQ    R10, DX         \
	SUBQ    R10, DX         \
	SUBQ    $4, BX          \
	DECQ    CX              \
	JNZ     node            \
done: \
	VZEROUPPER              \
	MOVB    $1, ret+64(FP)  \
	RET                     \
outside: \
	VZEROUPPER              \
	MOVB    $0, ret+64(FP)  \
	RET

// func descendAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool
//
// n is a multiple of 8, and false a unit that is none.
TEXT ·descendAVX2(SB), NOSPLIT, $0-57
	DESCEND(32, SPLIT(0, Y0, Y1, Y2))

// func descendAVX512(node, s, t *float32, phi *uint32, splits, n, units int) bool
//
// is descendAVX2 of a multiple of 16.
TEXT ·descendAVX512(SB), NOSPLIT, $0-57
	DESCEND(64, SPLIT(0, Z0, Z1, Z2))

// func ascendAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool
//
// n is a multiple of 8, and false a unit that is none.
TEXT ·ascendAVX2(SB), NOSPLIT, $0-65
	ASCEND(32, JOIN(0, Y0, Y1, Y2))

// func ascendAVX512(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool
//
// is ascendAVX2 of a multiple of 16.
TEXT ·ascendAVX512(SB), NOSPLIT, $0-65
	ASCEND(64, JOIN(0, Z0, Z1, Z2))

#define SPLIT4 \
	SPLIT(0, Y0, Y1, Y2)   \
	SPLIT(32, Y3, Y4, Y5)  \
	SPLIT(64, Y6, Y7, Y8)  \
	SPLIT(96, Y9, Y10, Y11)

#define JOIN4 \
	JOIN(0, Y0, Y1, Y2)   \
	JOIN(32, Y3, Y4, Y5)  \
	JOIN(64, Y6, Y7, Y8)  \
	JOIN(96, Y9, Y10, Y11)

// func descendFourAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool
//
// is descendAVX2 of a multiple of 32, four vectors at a time.
TEXT ·descendFourAVX2(SB), NOSPLIT, $0-57
	DESCEND(128, SPLIT4)

// func ascendFourAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool
//
// is ascendAVX2 of a multiple of 32, four vectors at a time.
TEXT ·ascendFourAVX2(SB), NOSPLIT, $0-65
	ASCEND(128, JOIN4)
