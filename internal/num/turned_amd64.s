//go:build !purego

#include "textflag.h"

// Registers:
//   DX dst at this block of columns   R11 a row of it        R10 bytes of a row
//   R14 a, AX within it               R8 bytes of a row      CX 3·R8, BX 5·R8
//   R9 turned at this block           R13 within it          R15 terms left
//   DI what is fetched ahead          SI how far it goes on for each term
// A block is two vectors wide: up to twelve sums in Y0 to Y11, each of which takes its terms
// in order.

#define LOAD(x, y) \
	VMOVUPD (R11), x   \
	VMOVUPD 32(R11), y \
	ADDQ    R10, R11

#define STORE(x, y) \
	VMOVUPD x, (R11)   \
	VMOVUPD y, 32(R11) \
	ADDQ    R10, R11

#define BEGIN \
	MOVQ R14, AX \
	MOVQ R9, R13 \
	MOVQ k+32(FP), R15

#define TERMS \
	VCVTPS2PD (R13), Y12   \
	VCVTPS2PD 16(R13), Y13

#define ROW(at, x, y) \
	VBROADCASTSD at, Y14     \
	VFMADD231PD Y12, Y14, x  \
	VFMADD231PD Y13, Y14, y

#define NEXT(loop) \
	PREFETCHT0 (DI) \
	ADDQ SI, DI     \
	ADDQ $8, AX     \
	ADDQ $64, R13   \
	DECQ R15        \
	JNZ  loop       \
	MOVQ DX, R11

#define ROW3 ROW((AX), Y0, Y1); ROW((AX)(R8*1), Y2, Y3); ROW((AX)(R8*2), Y4, Y5)
#define ROW4 ROW3; ROW((AX)(CX*1), Y6, Y7)
#define ROW5 ROW4; ROW((AX)(R8*4), Y8, Y9)
#define ROW6 ROW5; ROW((AX)(BX*1), Y10, Y11)

#define LOAD3 MOVQ DX, R11; LOAD(Y0, Y1); LOAD(Y2, Y3); LOAD(Y4, Y5)
#define LOAD4 LOAD3; LOAD(Y6, Y7)
#define LOAD5 LOAD4; LOAD(Y8, Y9)
#define LOAD6 LOAD5; LOAD(Y10, Y11)

#define STORE3 STORE(Y0, Y1); STORE(Y2, Y3); STORE(Y4, Y5)
#define STORE4 STORE3; STORE(Y6, Y7)
#define STORE5 STORE4; STORE(Y8, Y9)
#define STORE6 STORE5; STORE(Y10, Y11)

// func addTurnedAVX2(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, skip, step int)
//
// adds a (m×stride, its first k columns) times turned (k×16), widened, to the first 16 columns
// of dst (m×n), of 3 to 6 rows. It fetches what is ahead and skip bytes on, then step bytes on
// for each term of eight columns.
TEXT ·addTurnedAVX2(SB), NOSPLIT, $0-80
	MOVQ dst+0(FP), DX
	MOVQ a+8(FP), R14
	MOVQ turned+16(FP), R9
	MOVQ n+40(FP), R10
	MOVQ stride+48(FP), R8
	MOVQ ahead+56(FP), DI
	ADDQ skip+64(FP), DI
	MOVQ step+72(FP), SI
	MOVQ $2, R12
	SHLQ $3, R8
	SHLQ $3, R10
	LEAQ (R8)(R8*2), CX
	LEAQ (R8)(R8*4), BX

block:
	MOVQ m+24(FP), AX
	CMPQ AX, $5
	JGT  six
	JEQ  five
	CMPQ AX, $4
	JEQ  four
	LOAD3
	BEGIN

loop3:
	TERMS
	ROW3
	NEXT(loop3)
	STORE3
	JMP next

four:
	LOAD4
	BEGIN

loop4:
	TERMS
	ROW4
	NEXT(loop4)
	STORE4
	JMP next

five:
	LOAD5
	BEGIN

loop5:
	TERMS
	ROW5
	NEXT(loop5)
	STORE5
	JMP next

six:
	LOAD6
	BEGIN

loop6:
	TERMS
	ROW6
	NEXT(loop6)
	STORE6

next:
	ADDQ $64, DX
	ADDQ $32, R9
	DECQ R12
	JNZ  block
	VZEROUPPER
	RET
