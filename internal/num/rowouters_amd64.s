//go:build !purego

#include "textflag.h"

// Masks of the last features: a window on it has as many ones as there are.
DATA lastEight<>+0(SB)/8, $-1
DATA lastEight<>+8(SB)/8, $-1
DATA lastEight<>+16(SB)/8, $-1
DATA lastEight<>+24(SB)/8, $-1
DATA lastEight<>+32(SB)/8, $0
DATA lastEight<>+40(SB)/8, $0
DATA lastEight<>+48(SB)/8, $0
DATA lastEight<>+56(SB)/8, $0
GLOBL lastEight<>(SB), RODATA|NOPTR, $64

// Two vectors of features and up to six columns at a time: sums in V0 to V11, which take the rows in order.
//   DI sums of these features and columns     R10 sums of these features, R8 bytes of a column of sums
//   BX values of these columns, R9 of this row R13 features left
//   SI at, R11 of this row                    R12 rows left
//   DX x at these features                    CX columns left
// V12 and V13 are of a row of x, V14 is a value.

#define LOAD1 VMOVUPD (R15), V0; VMOVUPD W(R15), V1
#define LOAD2 LOAD1; ADDQ R8, R15; VMOVUPD (R15), V2; VMOVUPD W(R15), V3
#define LOAD3 LOAD2; ADDQ R8, R15; VMOVUPD (R15), V4; VMOVUPD W(R15), V5
#define LOAD4 LOAD3; ADDQ R8, R15; VMOVUPD (R15), V6; VMOVUPD W(R15), V7
#define LOAD5 LOAD4; ADDQ R8, R15; VMOVUPD (R15), V8; VMOVUPD W(R15), V9
#define LOAD6 LOAD5; ADDQ R8, R15; VMOVUPD (R15), V10; VMOVUPD W(R15), V11

#define STORE1 VMOVUPD V0, (DI); VMOVUPD V1, W(DI); ADDQ R8, DI
#define STORE2 STORE1; VMOVUPD V2, (DI); VMOVUPD V3, W(DI); ADDQ R8, DI
#define STORE3 STORE2; VMOVUPD V4, (DI); VMOVUPD V5, W(DI); ADDQ R8, DI
#define STORE4 STORE3; VMOVUPD V6, (DI); VMOVUPD V7, W(DI); ADDQ R8, DI
#define STORE5 STORE4; VMOVUPD V8, (DI); VMOVUPD V9, W(DI); ADDQ R8, DI
#define STORE6 STORE5; VMOVUPD V10, (DI); VMOVUPD V11, W(DI); ADDQ R8, DI

#define TERM(off, a, b) \
	VBROADCASTSD off(R9), V14 \
	VFMADD231PD  V12, V14, a  \
	VFMADD231PD  V13, V14, b

#define TERMS1 TERM(0, V0, V1)
#define TERMS2 TERMS1; TERM(512, V2, V3)
#define TERMS3 TERMS2; TERM(1024, V4, V5)
#define TERMS4 TERMS3; TERM(1536, V6, V7)
#define TERMS5 TERMS4; TERM(2048, V8, V9)
#define TERMS6 TERMS5; TERM(2560, V10, V11)

// COLUMNS adds the terms of n columns.
#define COLUMNS(LOAD, READ, TERMS, STORE, n, loop, next) \
	MOVQ DI, R15           \
	LOAD                   \
	MOVQ BX, R9            \
	MOVQ SI, R11           \
	MOVQ rows+32(FP), R12  \
loop: \
	MOVQ (R11), AX         \
	READ                   \
	TERMS                  \
	ADDQ $8, R11           \
	ADDQ $8, R9            \
	DECQ R12               \
	JNZ  loop              \
	STORE                  \
	ADDQ $(512*n), BX      \
	SUBQ $n, CX            \
	JMP  next

// FEATURES adds the terms of two vectors of features: of up to twelve columns as evenly as may be.
#define FEATURES(READ, next, tiles, one, two, three, four, five, six, l1, l2, l3, l4, l5, l6, done) \
	MOVQ R10, DI           \
	MOVQ p+48(FP), BX      \
	MOVQ n+56(FP), CX      \
next: \
	MOVQ CX, AX            \
	CMPQ CX, $12           \
	JGT  six               \
	CMPQ CX, $6            \
	JLE  tiles             \
	INCQ AX                \
	SHRQ $1, AX            \
tiles: \
	CMPQ AX, $6            \
	JEQ  six               \
	CMPQ AX, $5            \
	JEQ  five              \
	CMPQ AX, $4            \
	JEQ  four              \
	CMPQ AX, $3            \
	JEQ  three             \
	CMPQ AX, $2            \
	JEQ  two               \
	CMPQ AX, $1            \
	JEQ  one               \
	JMP  done              \
six: \
	COLUMNS(LOAD6, READ, TERMS6, STORE6, 6, l6, next) \
five: \
	COLUMNS(LOAD5, READ, TERMS5, STORE5, 5, l5, next) \
four: \
	COLUMNS(LOAD4, READ, TERMS4, STORE4, 4, l4, next) \
three: \
	COLUMNS(LOAD3, READ, TERMS3, STORE3, 3, l3, next) \
two: \
	COLUMNS(LOAD2, READ, TERMS2, STORE2, 2, l2, next) \
one: \
	COLUMNS(LOAD1, READ, TERMS1, STORE1, 1, l1, next) \
done:

#define BEGIN \
	MOVQ sums+0(FP), R10   \
	MOVQ stride+8(FP), R8  \
	SHLQ $3, R8            \
	MOVQ x+16(FP), DX      \
	MOVQ at+24(FP), SI     \
	MOVQ k+40(FP), R13

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
#define W 32
#define HALF 16

#define READ \
	VCVTPS2PD (DX)(AX*4), V12  \
	VCVTPS2PD HALF(DX)(AX*4), V13

#define READLAST \
	VMASKMOVPS   (DX)(AX*4), Y15, Y12 \
	VEXTRACTF128 $1, Y12, X13         \
	VCVTPS2PD    X12, Y12             \
	VCVTPS2PD    X13, Y13

// func addRowOutersAVX2(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int)
//
// None of rows and n is 0. It writes whole eights of sums.
TEXT ·addRowOutersAVX2(SB), NOSPLIT, $0-64
	BEGIN

eight:
	CMPQ R13, $8
	JLT  last
	FEATURES(READ, next, tiles, one, two, three, four, five, six, l1, l2, l3, l4, l5, l6, done)
	ADDQ $64, R10
	ADDQ $32, DX
	SUBQ $8, R13
	JMP  eight

last:
	TESTQ R13, R13
	JZ    end
	NEGQ  R13
	LEAQ  lastEight<>+32(SB), AX
	VMOVUPS (AX)(R13*4), Y15
	FEATURES(READLAST, lastNext, lastTiles, lastOne, lastTwo, lastThree, lastFour, lastFive, lastSix, lastL1, lastL2, lastL3, lastL4, lastL5, lastL6, lastDone)

end:
	VZEROUPPER
	RET

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
#undef W
#define W 64
#undef HALF
#define HALF 32

// func addRowOutersAVX512(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int)
//
// is addRowOutersAVX2 of a multiple of 16 features.
TEXT ·addRowOutersAVX512(SB), NOSPLIT, $0-64
	BEGIN

sixteen:
	FEATURES(READ, next, tiles, one, two, three, four, five, six, l1, l2, l3, l4, l5, l6, done)
	ADDQ $128, R10
	ADDQ $64, DX
	SUBQ $16, R13
	JNZ  sixteen
	VZEROUPPER
	RET
