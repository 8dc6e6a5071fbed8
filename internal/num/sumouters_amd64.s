//go:build !purego

#include "textflag.h"

#define MUL(at, y) VMULPS at(CX), Y8, y

#define FMA(at, y) VFMADD231PS at(CX), Y8, y

// TERM puts a term's number into all lanes, its row of x into CX and the next one into R14.
#define TERM \
	DECQ         R14               \
	CMPQ         R14, count+48(FP) \
	JAE          outside           \
	LEAQ         (R14)(R14*2), R15 \
	VBROADCASTSS (R9)(R15*4), Y8   \
	MOVL         4(R9)(R15*4), CX  \
	MOVL         8(R9)(R15*4), R14 \
	CMPQ         CX, of+64(FP)     \
	JAE          outside           \
	IMULQ        R11, CX           \
	ADDQ         R10, CX

// STORE stores a vector with +0 in the place of -0.
#define STORE(at, y) \
	VADDPS  Y9, y, y \
	VMOVUPS y, at(DI)

// func sumOutersAVX2(dst *float32, index *uint32, touched *uint64, words int, head *uint32, terms *OuterTerm, count int, x *float32, of, width int) int
//
// width is a multiple of 64; neither it nor words is 0. Blocks of 64 columns stay in
// registers for all terms. The first product stands for its sum with 0: a -0 of it becomes
// +0 in the end. It returns -1 where there is no such term or row of x.
//   SI the next word of touched   R13 the number of its first bit   BX its bits left
//   DI the row's block of dst     R12 the next number               R8 head
//   R9 terms                      R10 x at the block                R11 bytes of a row
//   DX the row's first term, R14 the next one, R15 its place        AX columns left, CX the row
TEXT ·sumOutersAVX2(SB), NOSPLIT, $0-88
	MOVQ   dst+0(FP), DI
	MOVQ   index+8(FP), R12
	MOVQ   touched+16(FP), SI
	MOVQ   head+32(FP), R8
	MOVQ   terms+40(FP), R9
	MOVQ   width+72(FP), R11
	SHLQ   $2, R11
	XORQ   R13, R13
	VXORPS Y9, Y9, Y9

word:
	MOVQ  (SI), BX
	MOVQ  $0, (SI)
	TESTQ BX, BX
	JZ    next

row:
	BSFQ BX, CX
	ADDQ R13, CX
	MOVL CX, (R12)
	ADDQ $4, R12
	MOVL (R8)(CX*4), DX
	MOVL $0, (R8)(CX*4)
	MOVQ x+56(FP), R10
	MOVQ width+72(FP), AX

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
	LEAQ         -1(BX), AX
	ANDQ         AX, BX
	JNZ          row

next:
	ADDQ $8, SI
	ADDQ $64, R13
	DECQ words+24(FP)
	JNZ  word
	VZEROUPPER
	SUBQ index+8(FP), R12
	SHRQ $2, R12
	MOVQ R12, ret+80(FP)
	RET

outside:
	VZEROUPPER
	MOVQ $-1, ret+80(FP)
	RET
