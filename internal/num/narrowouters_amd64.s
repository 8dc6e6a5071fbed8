//go:build !purego

#include "textflag.h"

// Lane masks: 8 words of ones, then 8 of zeros; a window on it has r ones.
DATA narrow<>+0(SB)/8, $-1
DATA narrow<>+8(SB)/8, $-1
DATA narrow<>+16(SB)/8, $-1
DATA narrow<>+24(SB)/8, $-1
DATA narrow<>+32(SB)/8, $0
DATA narrow<>+40(SB)/8, $0
DATA narrow<>+48(SB)/8, $0
DATA narrow<>+56(SB)/8, $0
GLOBL narrow<>(SB), RODATA|NOPTR, $64

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

#define STORE(at, y) \
	VADDPS  Y9, y, y \
	VMOVUPS y, at(DI)

#define MUL1 \
	VMULPS 0(CX), Y8, Y0
#define FMA1 \
	VFMADD231PS 0(CX), Y8, Y0
#define STORE1 \
	STORE(0, Y0)

#define MUL2 \
	MUL1                  \
	VMULPS 32(CX), Y8, Y1
#define FMA2 \
	FMA1                       \
	VFMADD231PS 32(CX), Y8, Y1
#define STORE2 \
	STORE1       \
	STORE(32, Y1)

#define MUL3 \
	MUL2                  \
	VMULPS 64(CX), Y8, Y2
#define FMA3 \
	FMA2                       \
	VFMADD231PS 64(CX), Y8, Y2
#define STORE3 \
	STORE2       \
	STORE(64, Y2)

#define MUL4 \
	MUL3                  \
	VMULPS 96(CX), Y8, Y3
#define FMA4 \
	FMA3                       \
	VFMADD231PS 96(CX), Y8, Y3
#define STORE4 \
	STORE3       \
	STORE(96, Y3)

// Some columns of one vector, those of the mask Y7.
#define MULSOME \
	VMASKMOVPS (CX), Y7, Y10 \
	VMULPS     Y10, Y8, Y0
#define FMASOME \
	VMASKMOVPS  (CX), Y7, Y10 \
	VFMADD231PS Y10, Y8, Y0
#define STORESOME \
	VADDPS     Y9, Y0, Y0 \
	VMASKMOVPS Y0, Y7, (DI)

// SUMS computes the columns of all rows, one row after the other.
#define SUMS(row, term, store, first, next, last) \
row:                   \
	MOVL  (SI), R14 \
	ADDQ  $4, SI    \
	TERM            \
	first           \
	TESTL R14, R14  \
	JZ    store     \
term:                  \
	TERM            \
	next            \
	TESTL R14, R14  \
	JNZ   term      \
store:                 \
	last            \
	ADDQ  R11, DI   \
	DECQ  BX        \
	JNZ   row       \
	JMP   done

// func narrowOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width, columns int) bool
//
// is sumOutersAVX2 of the first columns of rows of any width: 8, 16, 24 or 32 of them, or fewer than 8. None of rows,
// width and columns is 0.
//   DI the row of dst   SI first, BX rows left            R12 count, R13 rows of x
//   R9 terms            R10 x                             R11 bytes of a row
//   R14 the next term   R15 its place, CX the row of x    AX columns
TEXT ·narrowOutersAVX2(SB), NOSPLIT, $0-73
	MOVQ   dst+0(FP), DI
	MOVQ   first+8(FP), SI
	MOVQ   rows+16(FP), BX
	MOVQ   terms+24(FP), R9
	MOVQ   count+32(FP), R12
	MOVQ   x+40(FP), R10
	MOVQ   of+48(FP), R13
	MOVQ   width+56(FP), R11
	MOVQ   columns+64(FP), AX
	SHLQ   $2, R11
	VXORPS Y9, Y9, Y9
	CMPQ   AX, $8
	JEQ    row1
	CMPQ   AX, $16
	JEQ    row2
	CMPQ   AX, $24
	JEQ    row3
	CMPQ   AX, $32
	JEQ    row4

	MOVQ    $8, CX
	SUBQ    AX, CX
	LEAQ    narrow<>(SB), R15
	VMOVUPS (R15)(CX*4), Y7
	SUMS(row0, term0, store0, MULSOME, FMASOME, STORESOME)
	SUMS(row1, term1, store1, MUL1, FMA1, STORE1)
	SUMS(row2, term2, store2, MUL2, FMA2, STORE2)
	SUMS(row3, term3, store3, MUL3, FMA3, STORE3)
	SUMS(row4, term4, store4, MUL4, FMA4, STORE4)

done:
	VZEROUPPER
	MOVB $1, ret+72(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+72(FP)
	RET
