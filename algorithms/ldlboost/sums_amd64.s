//go:build !purego

#include "textflag.h"

// The rows at work are this many bytes behind in the list of rows those whose words are fetched.
#define AHEAD 32

#define LOAD1 VMOVDQU (R15), Y0
#define LOAD2 LOAD1; VMOVDQU 32(R15), Y1
#define LOAD3 LOAD2; VMOVDQU 64(R15), Y2
#define LOAD4 LOAD3; VMOVDQU 96(R15), Y3
#define LOAD5 LOAD4; VMOVDQU 128(R15), Y4
#define LOAD6 LOAD5; VMOVDQU 160(R15), Y5

#define ADD(at, x, y) VPADDQ at(R15), x, y; VMOVDQU y, at(R15)
#define ADD1 ADD(0, Y0, Y8)
#define ADD2 ADD1; ADD(32, Y1, Y9)
#define ADD3 ADD2; ADD(64, Y2, Y10)
#define ADD4 ADD3; ADD(96, Y3, Y11)
#define ADD5 ADD4; ADD(128, Y4, Y12)
#define ADD6 ADD5; ADD(160, Y5, Y13)

// SIZES has LOOP for rows of one to six vectors, CX.
#define SIZES(LOOP) \
	CMPQ CX, $1; \
	JEQ  row1; \
	CMPQ CX, $2; \
	JEQ  row2; \
	CMPQ CX, $3; \
	JEQ  row3; \
	CMPQ CX, $4; \
	JEQ  row4; \
	CMPQ CX, $5; \
	JEQ  row5; \
	JMP  row6; \
	LOOP(row1, inner1, end1, LOAD1, ADD1); \
	LOOP(row2, inner2, end2, LOAD2, ADD2); \
	LOOP(row3, inner3, end3, LOAD3, ADD3); \
	LOOP(row4, inner4, end4, LOAD4, ADD4); \
	LOOP(row5, inner5, end5, LOAD5, ADD5); \
	LOOP(row6, inner6, end6, LOAD6, ADD6)

// BINS adds rows to the bins of columns: DI block, SI words, DX codes, R8 rows, R9 how many, R10 bytes of a row's words,
// R11 bytes of its codes, R12 place of a column in these, R13 its first bin, BX columns.
#define BINS(row, column, next, LOAD, ADDS) \
row: \
	CMPQ  R9, $8; \
	JLE   next; \
	MOVL  AHEAD(R8), AX; \
	MOVQ  AX, CX; \
	IMULQ R10, AX; \
	IMULQ R11, CX; \
	PREFETCHT0 (SI)(AX*1); \
	PREFETCHT0 64(SI)(AX*1); \
	PREFETCHT0 128(SI)(AX*1); \
	PREFETCHT0 (DX)(CX*1); \
next: \
	MOVL  (R8), AX; \
	MOVQ  AX, R15; \
	IMULQ R10, R15; \
	ADDQ  SI, R15; \
	LOAD; \
	IMULQ R11, AX; \
	ADDQ  DX, AX; \
	XORL  CX, CX; \
column: \
	MOVL  (R12)(CX*4), R15; \
	MOVBLZX (AX)(R15*1), R15; \
	ADDL  (R13)(CX*4), R15; \
	IMULQ R10, R15; \
	ADDQ  DI, R15; \
	ADDS; \
	INCQ  CX; \
	CMPQ  CX, BX; \
	JLT   column; \
	ADDQ  $4, R8; \
	DECQ  R9; \
	JNZ   row; \
	JMP   done

// func addBinsAVX2(block, words *int64, vectors int, c *columnsOf)
TEXT ·addBinsAVX2(SB), NOSPLIT, $0-32
	MOVQ block+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ vectors+16(FP), CX
	MOVQ c+24(FP), AX
	MOVQ 0(AX), DX
	MOVQ 8(AX), R11
	MOVQ 16(AX), R8
	MOVQ 24(AX), R9
	MOVQ 32(AX), R12
	MOVQ 40(AX), R13
	MOVQ 48(AX), BX
	MOVQ 56(AX), R10
	SIZES(BINS)

done:
	VZEROUPPER
	RET

// LISTS adds rows to the bins in their lists: DI block, SI words, DX list, R8 rows, R9 how many, R10 bytes of a row's
// words, R11 where lists begin, R12 places of bins.
#define LISTS(row, bin, end, LOAD, ADDS) \
row: \
	MOVL  (R8), AX; \
	MOVQ  AX, R15; \
	IMULQ R10, R15; \
	ADDQ  SI, R15; \
	LOAD; \
	MOVL  (R11)(AX*4), CX; \
	MOVL  4(R11)(AX*4), BX; \
bin: \
	CMPQ  CX, BX; \
	JGE   end; \
	MOVL  (DX)(CX*4), AX; \
	INCQ  CX; \
	MOVLQSX (R12)(AX*4), R15; \
	TESTQ R15, R15; \
	JLT   bin; \
	IMULQ R10, R15; \
	ADDQ  DI, R15; \
	ADDS; \
	JMP   bin; \
end: \
	ADDQ  $4, R8; \
	DECQ  R9; \
	JNZ   row; \
	JMP   done

// func addListsAVX2(block, words *int64, vectors int, l *listsOf)
TEXT ·addListsAVX2(SB), NOSPLIT, $0-32
	MOVQ block+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ vectors+16(FP), CX
	MOVQ l+24(FP), AX
	MOVQ 0(AX), DX
	MOVQ 8(AX), R11
	MOVQ 16(AX), R12
	MOVQ 24(AX), R8
	MOVQ 32(AX), R9
	MOVQ 40(AX), R10
	SIZES(LISTS)

done:
	VZEROUPPER
	RET

// func unpackAVX2(sums *float64, words *int64, quads int)
// Two numbers x + y·2^32 with x below 0 have borrowed 1 from y.
TEXT ·unpackAVX2(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ quads+16(FP), CX

quad:
	VMOVDQU   (SI), X0
	VPSRLD    $31, X0, X1
	VPSLLQ    $32, X1, X1
	VPADDD    X1, X0, X0
	VCVTDQ2PD X0, Y0
	VADDPD    (DI), Y0, Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       quad
	VZEROUPPER
	RET

// func unpackNarrowAVX2(sums *int32, words *int64, bins, vectors, width, stride int)
// A word is two numbers as for unpackAVX2.
TEXT ·unpackNarrowAVX2(SB), NOSPLIT, $0-48
	MOVQ  sums+0(FP), DI
	MOVQ  words+8(FP), SI
	MOVQ  bins+16(FP), R8
	MOVQ  vectors+24(FP), R9
	MOVQ  width+32(FP), R10
	MOVQ  stride+40(FP), R11
	VPXOR Y3, Y3, Y3

bin:
	CMPL (SI), $0
	JEQ  next
	XORL AX, AX
	MOVQ R9, CX

vector:
	VMOVDQU (SI)(AX*1), Y0
	VPSRLD  $31, Y0, Y1
	VPSLLQ  $32, Y1, Y1
	VPADDD  Y1, Y0, Y0
	VPADDD  (DI)(AX*1), Y0, Y0
	VMOVDQU Y0, (DI)(AX*1)
	VMOVDQU Y3, (SI)(AX*1)
	ADDQ    $32, AX
	DECQ    CX
	JNZ     vector

next:
	ADDQ R10, DI
	ADDQ R11, SI
	DECQ R8
	JNZ  bin
	VZEROUPPER
	RET

// func subtractAVX2(dst, a, b *int32, vectors int)
TEXT ·subtractAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ vectors+24(FP), CX

vector:
	VMOVDQU (SI), Y0
	VPSUBD  (DX), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	DECQ    CX
	JNZ     vector
	VZEROUPPER
	RET

// func widenAVX2(dst *float64, numbers *int32, quads int)
TEXT ·widenAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ numbers+8(FP), SI
	MOVQ quads+16(FP), CX

quad:
	VCVTDQ2PD (SI), Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       quad
	VZEROUPPER
	RET

// ADDWIDE adds four float64 numbers to y, ADDWIDE1 one. ADDNARROW and ADDNARROW1 do so with int32 numbers.
#define ADDWIDE(own, y) VADDPD own, y, y
#define ADDWIDE1(own, x) VADDSD own, x, x
#define ADDNARROW(own, y) VCVTDQ2PD own, Y8; VADDPD Y8, y, y
#define ADDNARROW1(own, x) VCVTSI2SDL own, X8, X8; VADDSD X8, x, x

// LEFT adds four sums of a bin to the sums left of a threshold. It sets y to these, and z to what the node has besides.
#define LEFT(ADD, left, own, node, y, z) \
	VMOVUPD left, y; \
	ADD(own, y); \
	VMOVUPD y, left; \
	VMOVUPD node, z; \
	VSUBPD  y, z, z

// LEFT1 is LEFT of one sum.
#define LEFT1(ADD, left, own, node, y, z) \
	VMOVSD left, y; \
	ADD(own, y); \
	VMOVSD y, left; \
	VMOVSD node, z; \
	VSUBSD y, z, z

// SIDE sets q to x²/d with the numbers g and h of four labels in units: Y12 of g, Y13 of h, Y14 the least h, Y15 l2.
#define SIDE(g, h, q) \
	VMULPD Y12, g, g; \
	VMULPD g, g, g;   \
	VMAXPD Y14, h, h; \
	VMULPD Y13, h, h; \
	VADDPD Y15, h, h; \
	VDIVPD h, g, q

// SIDE1 is SIDE of one label.
#define SIDE1(g, h, q) \
	VMULSD X12, g, g; \
	VMULSD g, g, g;   \
	VMAXSD X14, h, h; \
	VMULSD X13, h, h; \
	VADDSD X15, h, h; \
	VDIVSD h, g, q

// DIAGONAL sets Y4 to x²/d of four labels left of a threshold, and Y5 to x²/d right of it.
#define DIAGONAL(ADD) \
	LEFT(ADD, (DI), (SI), (DX), Y0, Y2); \
	LEFT(ADD, (DI)(BX*1), (SI)(R8*1), (DX)(BX*1), Y1, Y3); \
	SIDE(Y0, Y1, Y4); \
	SIDE(Y2, Y3, Y5)

// DIAGONAL1 is DIAGONAL of one label.
#define DIAGONAL1(ADD) \
	LEFT1(ADD, (DI), (SI), (DX), X0, X2); \
	LEFT1(ADD, (DI)(BX*1), (SI)(R8*1), (DX)(BX*1), X1, X3); \
	SIDE1(X0, X1, X4); \
	SIDE1(X2, X3, X5)

// BOUND is DIAGONAL with hessian bound: it sets Y4 and Y5 to x².
#define BOUND(ADD) \
	LEFT(ADD, (DI), (SI), (DX), Y0, Y2); \
	VMULPD Y12, Y0, Y4; \
	VMULPD Y4, Y4, Y4; \
	VMULPD Y12, Y2, Y5; \
	VMULPD Y5, Y5, Y5

// BOUND1 is BOUND of one label.
#define BOUND1(ADD) \
	LEFT1(ADD, (DI), (SI), (DX), X0, X2); \
	VMULSD X12, X0, X4; \
	VMULSD X4, X4, X4; \
	VMULSD X12, X2, X5; \
	VMULSD X5, X5, X5

// ORDERED adds four numbers of Y4 to the low number of X10, and four of Y5 to the high one, each in order.
#define ORDERED \
	VUNPCKLPD    Y5, Y4, Y6; \
	VUNPCKHPD    Y5, Y4, Y7; \
	VADDPD       X6, X10, X10; \
	VADDPD       X7, X10, X10; \
	VEXTRACTF128 $1, Y6, X6; \
	VEXTRACTF128 $1, Y7, X7; \
	VADDPD       X6, X10, X10; \
	VADDPD       X7, X10, X10

// SCAN sets X10 to two sums over CX labels, in order: DI left, SI own, whose numbers have size bytes, DX node. FOUR and
// ONE give what is added for labels, ADD and ADD1 add numbers of own. BX and R8 are from g to h.
#define SCAN(size, FOUR, ONE, ADD, ADD1) \
	VXORPD    X10, X10, X10; \
	VMOVSD    (DI), X0; \
	ADD1((SI), X0); \
	VMOVSD    X0, (DI); \
	ADDQ      $8, DI; \
	ADDQ      $size, SI; \
	ADDQ      $8, DX; \
	LEAQ      (CX*8), BX; \
	LEAQ      (CX*size), R8; \
	SUBQ      $4, CX; \
	JLT       rest; \
four: \
	FOUR(ADD); \
	ORDERED; \
	ADDQ      $32, DI; \
	ADDQ      $(4*size), SI; \
	ADDQ      $32, DX; \
	SUBQ      $4, CX; \
	JGE       four; \
rest: \
	ADDQ      $4, CX; \
	JZ        done; \
one: \
	ONE(ADD1); \
	VUNPCKLPD X5, X4, X6; \
	VADDPD    X6, X10, X10; \
	ADDQ      $8, DI; \
	ADDQ      $size, SI; \
	ADDQ      $8, DX; \
	DECQ      CX; \
	JNZ       one; \
done: \
	VZEROUPPER

// UNITS broadcasts the units that AX points to.
#define UNITS \
	VBROADCASTSD 0(AX), Y12; \
	VBROADCASTSD 8(AX), Y13; \
	VBROADCASTSD 16(AX), Y14; \
	VBROADCASTSD 24(AX), Y15

// func scanAVX2(left, own, node *float64, labels int, u *units) (score, rest float64)
TEXT ·scanAVX2(SB), NOSPLIT, $0-56
	MOVQ left+0(FP), DI
	MOVQ own+8(FP), SI
	MOVQ node+16(FP), DX
	MOVQ labels+24(FP), CX
	MOVQ u+32(FP), AX
	UNITS
	SCAN(8, DIAGONAL, DIAGONAL1, ADDWIDE, ADDWIDE1)
	VMOVSD  X10, score+40(FP)
	VMOVHPD X10, rest+48(FP)
	RET

// func scanNarrowAVX2(left *float64, own *int32, node *float64, labels int, u *units) (score, rest float64)
TEXT ·scanNarrowAVX2(SB), NOSPLIT, $0-56
	MOVQ left+0(FP), DI
	MOVQ own+8(FP), SI
	MOVQ node+16(FP), DX
	MOVQ labels+24(FP), CX
	MOVQ u+32(FP), AX
	UNITS
	SCAN(4, DIAGONAL, DIAGONAL1, ADDNARROW, ADDNARROW1)
	VMOVSD  X10, score+40(FP)
	VMOVHPD X10, rest+48(FP)
	RET

// func scanBoundAVX2(left, own, node *float64, labels int, gradient float64) (score, rest float64)
TEXT ·scanBoundAVX2(SB), NOSPLIT, $0-56
	MOVQ left+0(FP), DI
	MOVQ own+8(FP), SI
	MOVQ node+16(FP), DX
	MOVQ labels+24(FP), CX
	VBROADCASTSD gradient+32(FP), Y12
	SCAN(8, BOUND, BOUND1, ADDWIDE, ADDWIDE1)
	VMOVSD  X10, score+40(FP)
	VMOVHPD X10, rest+48(FP)
	RET

// func scanBoundNarrowAVX2(left *float64, own *int32, node *float64, labels int, gradient float64) (score, rest float64)
TEXT ·scanBoundNarrowAVX2(SB), NOSPLIT, $0-56
	MOVQ left+0(FP), DI
	MOVQ own+8(FP), SI
	MOVQ node+16(FP), DX
	MOVQ labels+24(FP), CX
	VBROADCASTSD gradient+32(FP), Y12
	SCAN(4, BOUND, BOUND1, ADDNARROW, ADDNARROW1)
	VMOVSD  X10, score+40(FP)
	VMOVHPD X10, rest+48(FP)
	RET
