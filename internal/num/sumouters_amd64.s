//go:build !purego

#include "textflag.h"

#define MUL(at, y) VMULPS at(CX), Y8, y

#define FMA(at, y) VFMADD231PS at(CX), Y8, y

// TERM puts a term's number into all lanes, its row of x into CX and the next one into R14.
#define TERM \
	DECQ         R14               \
	CMPQ         R14, R12          \
	JAE          outside           \
	LEAQ         (R14)(R14*2), R15 \
	VBROADCASTSS (R9)(R15*4), Y8   \
	MOVL         4(R9)(R15*4), CX  \
	MOVL         8(R9)(R15*4), R14 \
	CMPQ         CX, R13           \
	JAE          outside           \
	IMULQ        R11, CX           \
	ADDQ         R10, CX

// STORE stores a vector with +0 in the place of -0.
#define STORE(at, y) \
	VADDPS  Y9, y, y \
	VMOVUPS y, at(DI)

// func sumOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width int) bool
//
// width is a multiple of 64; neither it nor rows is 0. Blocks of 64 columns stay in
// registers for all terms. The first product stands for its sum with 0: a -0 of it becomes
// +0 in the end. It returns false where there is no such term or row of x.
//   DI the row's block of dst     SI first, BX rows left     R12 count, R13 rows of x
//   R9 terms                      R10 x at the block         R11 bytes of a row
//   DX the row's first term, R14 the next one, R15 its place AX columns left, CX the row of x
TEXT ·sumOutersAVX2(SB), NOSPLIT, $0-65
	MOVQ   dst+0(FP), DI
	MOVQ   first+8(FP), SI
	MOVQ   rows+16(FP), BX
	MOVQ   terms+24(FP), R9
	MOVQ   count+32(FP), R12
	MOVQ   of+48(FP), R13
	MOVQ   width+56(FP), R11
	SHLQ   $2, R11
	VXORPS Y9, Y9, Y9

row:
	MOVL (SI), DX
	ADDQ $4, SI
	MOVQ x+40(FP), R10
	MOVQ width+56(FP), AX

block:
	MOVL  DX, R14
	TERM
	MUL(0, Y0)
	MUL(32, Y1)
	MUL(64, Y2)
	MUL(96, Y3)
	MUL(128, Y4)
	MUL(160, Y5)
	MUL(192, Y6)
	MUL(224, Y7)
	TESTL R14, R14
	JZ    store

term:
	TERM
	FMA(0, Y0)
	FMA(32, Y1)
	FMA(64, Y2)
	FMA(96, Y3)
	FMA(128, Y4)
	FMA(160, Y5)
	FMA(192, Y6)
	FMA(224, Y7)
	TESTL R14, R14
	JNZ   term

store:
	STORE(0, Y0)
	STORE(32, Y1)
	STORE(64, Y2)
	STORE(96, Y3)
	STORE(128, Y4)
	STORE(160, Y5)
	STORE(192, Y6)
	STORE(224, Y7)
	ADDQ         $256, DI
	ADDQ         $256, R10
	SUBQ         $64, AX
	JNZ          block
	DECQ         BX
	JNZ          row
	VZEROUPPER
	MOVB         $1, ret+64(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+64(FP)
	RET
