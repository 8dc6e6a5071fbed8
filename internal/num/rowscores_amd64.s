//go:build !purego

#include "textflag.h"

// Masks of the last features: a window on it has as many ones as there are.
DATA last<>+0(SB)/8, $-1
DATA last<>+8(SB)/8, $-1
DATA last<>+16(SB)/8, $-1
DATA last<>+24(SB)/8, $-1
DATA last<>+32(SB)/8, $0
DATA last<>+40(SB)/8, $0
DATA last<>+48(SB)/8, $0
DATA last<>+56(SB)/8, $0
GLOBL last<>(SB), RODATA|NOPTR, $64

// scoreRows works on four rows at a time, and on one to three vectors of weights.
//   R8, R9, R10, R11 the rows                 AX bytes of features that are done
//   BX weights of this step, R12 to the next  R13 weights at the first step of these columns
//   DI dst of these columns and rows          R14 their offsets
//   SI at, DX mask of the last features       CX vectors left, R15 bytes of whole fours of features
// Sums are V0 to V11, three of each row; V12 is of a row, V13 to V15 are weights.

#define ROWS \
	MOVQ x+8(FP), AX        \
	MOVQ (SI), R8           \
	LEAQ (AX)(R8*4), R8     \
	MOVQ 8(SI), R9          \
	LEAQ (AX)(R9*4), R9     \
	MOVQ 16(SI), R10        \
	LEAQ (AX)(R10*4), R10   \
	MOVQ 24(SI), R11        \
	LEAQ (AX)(R11*4), R11

#define CLEAR(a, b, c, d) \
	VXORPD a, a, a \
	VXORPD b, b, b \
	VXORPD c, c, c \
	VXORPD d, d, d

#define WEIGHTS1 VMOVUPD (BX), V13
#define WEIGHTS2 WEIGHTS1; VMOVUPD W(BX), V14
#define WEIGHTS3 WEIGHTS2; VMOVUPD W*2(BX), V15

#define TERM1(a) VFMADD231PD V13, V12, a
#define TERM2(a, b) TERM1(a); VFMADD231PD V14, V12, b
#define TERM3(a, b, c) TERM2(a, b); VFMADD231PD V15, V12, c

#define TERMS1(READ) WEIGHTS1; READ(R8); TERM1(V0); READ(R9); TERM1(V3); READ(R10); TERM1(V6); READ(R11); TERM1(V9)
#define TERMS2(READ) WEIGHTS2; READ(R8); TERM2(V0, V1); READ(R9); TERM2(V3, V4); READ(R10); TERM2(V6, V7); READ(R11); TERM2(V9, V10)
#define TERMS3(READ) WEIGHTS3; READ(R8); TERM3(V0, V1, V2); READ(R9); TERM3(V3, V4, V5); READ(R10); TERM3(V6, V7, V8); READ(R11); TERM3(V9, V10, V11)

// SUMS computes the sums of some columns. Features behind the whole fours are masked. It fetches the rows that follow, if
// they stand behind these.
#define SUMS(TERMS, loop, tail, done) \
	MOVQ  R13, BX   \
	XORQ  AX, AX    \
	TESTQ R15, R15  \
	JZ    tail      \
loop: \
	PREFETCHT0 4096(R8)(AX*4) \
	TERMS(READ4)    \
	ADDQ  R12, BX   \
	ADDQ  $16, AX   \
	CMPQ  AX, R15   \
	JLT   loop      \
tail: \
	TESTQ $3, k+32(FP) \
	JZ    done      \
	TERMS(READLAST) \
done:

// SCORES is the body of both kernels.
#define SCORES \
	MOVQ at+16(FP), SI   \
	MOVQ k+32(FP), R15   \
	ANDQ $3, R15         \
	NEGQ R15             \
	LEAQ last<>+32(SB), DX \
	LEAQ (DX)(R15*4), DX \
	ADDQ k+32(FP), R15   \
	SHLQ $2, R15         \
	MOVQ n+48(FP), R12   \
	SHLQ $5, R12         \
group: \
	ROWS                 \
	MOVQ dst+0(FP), DI   \
	MOVQ packed+40(FP), R13 \
	MOVQ offsets+56(FP), R14 \
	MOVQ vectors+64(FP), CX \
columns: \
	CMPQ CX, $2          \
	JEQ  two             \
	JLT  one             \
	CMPQ CX, $4          \
	JEQ  two             \
	CLEAR(V0, V3, V6, V9) \
	CLEAR(V1, V4, V7, V10) \
	CLEAR(V2, V5, V8, V11) \
	SUMS(TERMS3, loop3, tail3, done3) \
	SCORE(V0, V3, V6, V9) \
	SCORE(V1, V4, V7, V10) \
	SCORE(V2, V5, V8, V11) \
	ADDQ $W*3, R13       \
	SUBQ $3, CX          \
	JG   columns         \
	JMP  next            \
two: \
	CLEAR(V0, V3, V6, V9) \
	CLEAR(V1, V4, V7, V10) \
	SUMS(TERMS2, loop2, tail2, done2) \
	SCORE(V0, V3, V6, V9) \
	SCORE(V1, V4, V7, V10) \
	ADDQ $W*2, R13       \
	SUBQ $2, CX          \
	JG   columns         \
	JMP  next            \
one: \
	CLEAR(V0, V3, V6, V9) \
	SUMS(TERMS1, loop1, tail1, done1) \
	SCORE(V0, V3, V6, V9) \
next: \
	ADDQ $32, dst+0(FP)  \
	ADDQ $32, SI         \
	DECQ groups+24(FP)   \
	JNZ  group           \
	VZEROUPPER           \
	RET

#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define V7 Y7
#define V8 Y8
#define V9 Y9
#define V10 Y10
#define V11 Y11
#define V12 Y12
#define V13 Y13
#define V14 Y14
#define V15 Y15
#define W 32

#define READ4(row) VCVTPS2PD (row)(AX*1), Y12

#define READLAST(row) \
	VMOVUPS    (DX), X12             \
	VMASKMOVPS (row)(AX*1), X12, X12 \
	VCVTPS2PD  X12, Y12

// SCORE adds up the four sums of a column of four rows, and stores them.
#define SCORE(a, b, c, d) \
	VUNPCKLPD   b, a, Y12         \
	VUNPCKHPD   b, a, Y13         \
	VADDPD      Y13, Y12, Y12     \
	VUNPCKLPD   d, c, Y14         \
	VUNPCKHPD   d, c, Y15         \
	VADDPD      Y15, Y14, Y14     \
	VPERM2F128  $0x20, Y14, Y12, Y13 \
	VPERM2F128  $0x31, Y14, Y12, Y15 \
	VADDPD      Y15, Y13, Y13     \
	VADDPD      (R14), Y13, Y13   \
	VMOVUPD     Y13, (DI)         \
	ADDQ        $32, R14          \
	ADDQ        $512, DI

// func scoreRowsAVX2(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64, vectors int)
//
// does groups of four rows. n is even. None of groups and vectors, here one for each column, is 0.
TEXT ·scoreRowsAVX2(SB), NOSPLIT, $0-72
	SCORES

#undef V0
#define V0 Z0
#undef V1
#define V1 Z1
#undef V2
#define V2 Z2
#undef V3
#define V3 Z3
#undef V4
#define V4 Z4
#undef V5
#define V5 Z5
#undef V6
#define V6 Z6
#undef V7
#define V7 Z7
#undef V8
#define V8 Z8
#undef V9
#define V9 Z9
#undef V10
#define V10 Z10
#undef V11
#define V11 Z11
#undef V12
#define V12 Z12
#undef V13
#define V13 Z13
#undef V14
#define V14 Z14
#undef V15
#define V15 Z15
#undef W
#define W 64

#undef READ4
#define READ4(row) \
	VBROADCASTF32X4 (row)(AX*1), Y12 \
	VCVTPS2PD       Y12, Z12

#undef READLAST
#define READLAST(row) \
	VMOVUPS     (DX), X12             \
	VMASKMOVPS  (row)(AX*1), X12, X12 \
	VINSERTF128 $1, X12, Y12, Y12     \
	VCVTPS2PD   Y12, Z12

#undef SCORE
#define SCORE(a, b, c, d) \
	VUNPCKLPD     b, a, Z12        \
	VUNPCKHPD     b, a, Z13        \
	VADDPD        Z13, Z12, Z12    \
	VUNPCKLPD     d, c, Z14        \
	VUNPCKHPD     d, c, Z15        \
	VADDPD        Z15, Z14, Z14    \
	VSHUFF64X2    $0x88, Z14, Z12, Z13 \
	VSHUFF64X2    $0xdd, Z14, Z12, Z15 \
	VADDPD        Z15, Z13, Z13    \
	VSHUFF64X2    $0xd8, Z13, Z13, Z13 \
	VADDPD        (R14), Z13, Z13  \
	VMOVUPD       Y13, (DI)        \
	VEXTRACTF64X4 $1, Z13, 512(DI) \
	ADDQ          $64, R14         \
	ADDQ          $1024, DI

// func scoreRowsAVX512(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64, vectors int)
//
// is scoreRowsAVX2 with vectors of two columns.
TEXT ·scoreRowsAVX512(SB), NOSPLIT, $0-72
	SCORES
