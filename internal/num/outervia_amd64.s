//go:build !purego

#include "textflag.h"

// Registers:
//   DI m at this block of columns   CX columns left    R8 bytes of a row of m
//   BX x at this block              R9, R12, R11 a, index and rows left in this pass
//   R10 the row of m                R13 rows of m, R14 slot, R15 slots
//   V0 to V7 x

// VIA takes block after block of 64 columns, which stay in registers for all rows.
#define VIA(LOAD, ROW, V15) \
	MOVQ  m+0(FP), DI       \
	MOVQ  n+8(FP), CX       \
	MOVQ  x+32(FP), BX      \
	MOVQ  slot+48(FP), R14  \
	MOVQ  slots+56(FP), R15 \
	MOVQ  limit+64(FP), R13 \
	LEAQ  (CX*4), R8        \
block: \
	MOVQ  a+16(FP), R9      \
	MOVQ  rows+24(FP), R11  \
	MOVQ  index+40(FP), R12 \
	LOAD                    \
row: \
	MOVL  (R12), R10        \
	CMPQ  R10, R15          \
	JAE   outside           \
	MOVL  (R14)(R10*4), R10 \
	CMPQ  R10, R13          \
	JAE   outside           \
	IMULQ R8, R10           \
	ADDQ  DI, R10           \
	VBROADCASTSS (R9), V15  \
	ROW                     \
	ADDQ  $4, R9            \
	ADDQ  $4, R12           \
	DECQ  R11               \
	JNZ   row               \
	ADDQ  $256, DI          \
	ADDQ  $256, BX          \
	SUBQ  $64, CX           \
	JNZ   block             \
	VZEROUPPER              \
	MOVB  $1, ret+72(FP)    \
	RET                     \
outside: \
	VZEROUPPER              \
	MOVB  $0, ret+72(FP)    \
	RET

#define LOAD8 \
	VMOVUPS 0(BX), Y0   \
	VMOVUPS 32(BX), Y1  \
	VMOVUPS 64(BX), Y2  \
	VMOVUPS 96(BX), Y3  \
	VMOVUPS 128(BX), Y4 \
	VMOVUPS 160(BX), Y5 \
	VMOVUPS 192(BX), Y6 \
	VMOVUPS 224(BX), Y7

#define STEP(at, x, a, y) \
	VMOVUPS     at(R10), y \
	VFMADD231PS x, a, y    \
	VMOVUPS     y, at(R10)

#define ROW8 \
	STEP(0, Y0, Y15, Y8)    \
	STEP(32, Y1, Y15, Y9)   \
	STEP(64, Y2, Y15, Y10)  \
	STEP(96, Y3, Y15, Y11)  \
	STEP(128, Y4, Y15, Y8)  \
	STEP(160, Y5, Y15, Y9)  \
	STEP(192, Y6, Y15, Y10) \
	STEP(224, Y7, Y15, Y11)

#define LOAD4 \
	VMOVUPS 0(BX), Z0   \
	VMOVUPS 64(BX), Z1  \
	VMOVUPS 128(BX), Z2 \
	VMOVUPS 192(BX), Z3

#define ROW4 \
	STEP(0, Z0, Z15, Z8)    \
	STEP(64, Z1, Z15, Z9)   \
	STEP(128, Z2, Z15, Z10) \
	STEP(192, Z3, Z15, Z11)

// func addOuterViaAVX2(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool
//
// n is a multiple of 64; neither it nor rows is 0. It returns false where a row is none.
TEXT ·addOuterViaAVX2(SB), NOSPLIT, $0-73
	VIA(LOAD8, ROW8, Y15)

// func addOuterViaAVX512(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool
//
// is addOuterViaAVX2 with wider vectors.
TEXT ·addOuterViaAVX512(SB), NOSPLIT, $0-73
	VIA(LOAD4, ROW4, Z15)
