//go:build !purego

#include "textflag.h"

// The products in vectors of 64 bytes. Registers of both:
//   DI dst at this block of columns    DX dst at this group of rows, R11 three rows on
//   SI b at this block                 R13 b within it
//   R14 a at this group                AX within it
//   R8 bytes from a[i,t] to a[i+1,t]   CX three, BX five times as many
//   R9 from a[i,t] to a[i,t+1]         R10 bytes of a row of dst
//   R12 rows left                      R15 terms left
// In addTurned DI is what is fetched ahead, and SI how far that goes on for each term.
//
// A block is four vectors wide, of six to one rows at a time: at most 24 sums, in Z0 to
// Z23, each of which takes its terms in order. Z24 to Z27 are a row of b, Z28 is a[i,t].
// Two groups of nearly as many rows are better than a full one and a narrow one, which
// waits for its sums.

#define LOAD4(at, a, b, c, d) \
	VMOVUPS 0 at, a   \
	VMOVUPS 64 at, b  \
	VMOVUPS 128 at, c \
	VMOVUPS 192 at, d

#define STORE4(at, a, b, c, d) \
	VMOVUPS a, 0 at   \
	VMOVUPS b, 64 at  \
	VMOVUPS c, 128 at \
	VMOVUPS d, 192 at

#define ROW1(OP) OP((DX), Z0, Z1, Z2, Z3)
#define ROW2(OP) ROW1(OP); OP((DX)(R10*1), Z4, Z5, Z6, Z7)
#define ROW3(OP) ROW2(OP); OP((DX)(R10*2), Z8, Z9, Z10, Z11)
#define ROW4(OP) ROW3(OP); OP((R11), Z12, Z13, Z14, Z15)
#define ROW5(OP) ROW4(OP); OP((R11)(R10*1), Z16, Z17, Z18, Z19)
#define ROW6(OP) ROW5(OP); OP((R11)(R10*2), Z20, Z21, Z22, Z23)

#define TERM(BROADCAST, FMA, at, a, b, c, d) \
	BROADCAST at, Z28     \
	FMA       Z24, Z28, a \
	FMA       Z25, Z28, b \
	FMA       Z26, Z28, c \
	FMA       Z27, Z28, d

#define TERM1(B, F) TERM(B, F, (AX), Z0, Z1, Z2, Z3)
#define TERM2(B, F) TERM1(B, F); TERM(B, F, (AX)(R8*1), Z4, Z5, Z6, Z7)
#define TERM3(B, F) TERM2(B, F); TERM(B, F, (AX)(R8*2), Z8, Z9, Z10, Z11)
#define TERM4(B, F) TERM3(B, F); TERM(B, F, (AX)(CX*1), Z12, Z13, Z14, Z15)
#define TERM5(B, F) TERM4(B, F); TERM(B, F, (AX)(R8*4), Z16, Z17, Z18, Z19)
#define TERM6(B, F) TERM5(B, F); TERM(B, F, (AX)(BX*1), Z20, Z21, Z22, Z23)

// GROUP computes as many rows of dst in a block as ROWS and TERMS take: n of them.
#define GROUP(ROWS, TERMS, BROADCAST, FMA, terms, n, loop, next) \
	LEAQ  (DX)(R10*2), R11 \
	ADDQ  R10, R11         \
	ROWS(LOAD4)            \
	MOVQ  R14, AX          \
	MOVQ  BASE, R13        \
	MOVQ  terms, R15       \
loop: \
	READ                   \
	TERMS(BROADCAST, FMA)  \
	STEP                   \
	DECQ  R15              \
	JNZ   loop             \
	ROWS(STORE4)           \
	SUBQ  $n, R12          \
	IMUL3Q $n, R10, AX     \
	ADDQ  AX, DX           \
	IMUL3Q $n, R8, AX      \
	ADDQ  AX, R14          \
	JMP   next

// BLOCK computes all rows of dst in a block.
#define BLOCK(BROADCAST, FMA, terms, rows, six, five, four, three, two, one, l6, l5, l4, l3, l2, l1, end) \
rows: \
	CMPQ R12, $11 \
	JGE  six      \
	CMPQ R12, $6  \
	JEQ  six      \
	CMPQ R12, $9  \
	JGE  five     \
	CMPQ R12, $7  \
	JGE  four     \
	CMPQ R12, $5  \
	JEQ  five     \
	CMPQ R12, $4  \
	JEQ  four     \
	CMPQ R12, $3  \
	JEQ  three    \
	CMPQ R12, $2  \
	JEQ  two      \
	CMPQ R12, $1  \
	JEQ  one      \
	JMP  end      \
six: \
	GROUP(ROW6, TERM6, BROADCAST, FMA, terms, 6, l6, rows) \
five: \
	GROUP(ROW5, TERM5, BROADCAST, FMA, terms, 5, l5, rows) \
four: \
	GROUP(ROW4, TERM4, BROADCAST, FMA, terms, 4, l4, rows) \
three: \
	GROUP(ROW3, TERM3, BROADCAST, FMA, terms, 3, l3, rows) \
two: \
	GROUP(ROW2, TERM2, BROADCAST, FMA, terms, 2, l2, rows) \
one: \
	GROUP(ROW1, TERM1, BROADCAST, FMA, terms, 1, l1, rows) \
end:

#define READ LOAD4((R13), Z24, Z25, Z26, Z27)

#define STEP \
	ADDQ R9, AX   \
	ADDQ R10, R13

#define BASE SI

// func addProductAVX512(dst, a, b *float32, m, k, n, ai, at, columns int)
//
// is addProductAVX2 of a multiple of 64 columns.
TEXT ·addProductAVX512(SB), NOSPLIT, $8-72
	MOVQ dst+0(FP), DI
	MOVQ b+16(FP), SI
	MOVQ n+40(FP), R10
	MOVQ ai+48(FP), R8
	MOVQ at+56(FP), R9
	MOVQ columns+64(FP), R11
	MOVQ R11, left-8(SP)
	SHLQ $2, R8
	SHLQ $2, R9
	SHLQ $2, R10
	LEAQ (R8)(R8*2), CX
	LEAQ (R8)(R8*4), BX

block:
	MOVQ m+24(FP), R12
	MOVQ a+8(FP), R14
	MOVQ DI, DX
	BLOCK(VBROADCASTSS, VFMADD231PS, k+32(FP), rows, six, five, four, three, two, one, l6, l5, l4, l3, l2, l1, end)
	ADDQ $256, DI
	ADDQ $256, SI
	SUBQ $64, left-8(SP)
	JGT  block
	VZEROUPPER
	RET

#undef BASE
#define BASE R9

#undef READ
#define READ \
	VCVTPS2PD (R13), Z24   \
	VCVTPS2PD 32(R13), Z25 \
	VCVTPS2PD 64(R13), Z26 \
	VCVTPS2PD 96(R13), Z27
#undef STEP
#define STEP \
	PREFETCHT0 (DI)       \
	PREFETCHT0 64(DI)     \
	ADDQ       SI, DI     \
	ADDQ       $8, AX     \
	ADDQ       $128, R13

// func addTurnedAVX512(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, step int)
//
// adds a (m×stride, its first k columns) times turned (k×32), which is widened on the way, to the
// first 32 columns of dst (m×n). It fetches 128 bytes of what is ahead, step bytes on for each term.
TEXT ·addTurnedAVX512(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DX
	MOVQ a+8(FP), R14
	MOVQ turned+16(FP), R9
	MOVQ m+24(FP), R12
	MOVQ n+40(FP), R10
	MOVQ stride+48(FP), R8
	MOVQ ahead+56(FP), DI
	MOVQ step+64(FP), SI
	SHLQ $3, R8
	SHLQ $3, R10
	LEAQ (R8)(R8*2), CX
	LEAQ (R8)(R8*4), BX
	BLOCK(VBROADCASTSD, VFMADD231PD, k+32(FP), rows, six, five, four, three, two, one, l6, l5, l4, l3, l2, l1, end)
	VZEROUPPER
	RET
