//go:build !purego

#include "textflag.h"

// FMA adds a[k] times a vector of a row of m.
#define FMA(at, z) VFMADD231PS at(R10), Z8, z

// func mulAddRowsAtAVX512(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool
//
// n is a multiple of 64; neither it nor rows is 0. Block after block of 64 columns stays in
// registers for all rows. It returns false where a row is none.
TEXT ·mulAddRowsAtAVX512(SB), NOSPLIT, $0-57
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ m+32(FP), BX
	MOVQ limit+48(FP), R13
	LEAQ (CX*4), R8

block:
	MOVQ    a+16(FP), R9
	MOVQ    rows+24(FP), R11
	MOVQ    index+40(FP), R12
	VMOVUPS 0(DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS 128(DI), Z2
	VMOVUPS 192(DI), Z3

row:
	MOVL         (R12), R10
	CMPQ         R10, R13
	JAE          outside
	IMULQ        R8, R10
	ADDQ         BX, R10
	VBROADCASTSS (R9), Z8
	FMA(0, Z0)
	FMA(64, Z1)
	FMA(128, Z2)
	FMA(192, Z3)
	ADDQ         $4, R9
	ADDQ         $4, R12
	DECQ         R11
	JNZ          row
	VMOVUPS      Z0, 0(DI)
	VMOVUPS      Z1, 64(DI)
	VMOVUPS      Z2, 128(DI)
	VMOVUPS      Z3, 192(DI)
	ADDQ         $256, DI
	ADDQ         $256, BX
	SUBQ         $64, CX
	JNZ          block
	VZEROUPPER
	MOVB         $1, ret+56(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+56(FP)
	RET
