//go:build !purego

#include "textflag.h"

// Registers:
//   DI dst, DX dst at this group of rows  BX b
//   R14 a at this group, AX within it     R13 b within the group, or a row of dst
//   R8 bytes from a[i,t] to a[i+1,t]      R9 from a[i,t] to a[i,t+1]
//   CX 3·R8, R11 5·R8                     R10 bytes of a row of dst and of b
//   R12 rows left                         R15 terms left
// A group is up to six rows of two vectors: twelve sums in Z0 to Z11, each of which takes
// its terms in order.

#define LOAD(x, y) \
	VMOVUPS (R13), x   \
	VMOVUPS 64(R13), y \
	ADDQ    R10, R13

#define STORE(x, y) \
	VMOVUPS x, (R13)   \
	VMOVUPS y, 64(R13) \
	ADDQ    R10, R13

#define BEGIN \
	MOVQ R14, AX \
	MOVQ BX, R13 \
	MOVQ k+32(FP), R15

#define TERMS \
	VMOVUPS (R13), Z12 \
	VMOVUPS 64(R13), Z13

#define ROW(at, x, y) \
	VBROADCASTSS at, Z14     \
	VFMADD231PS Z12, Z14, x  \
	VFMADD231PS Z13, Z14, y

#define NEXT(loop) \
	ADDQ R9, AX   \
	ADDQ R10, R13 \
	DECQ R15      \
	JNZ  loop     \
	MOVQ DX, R13

#define ROW1 ROW((AX), Z0, Z1)
#define ROW2 ROW1; ROW((AX)(R8*1), Z2, Z3)
#define ROW3 ROW2; ROW((AX)(R8*2), Z4, Z5)
#define ROW4 ROW3; ROW((AX)(CX*1), Z6, Z7)
#define ROW5 ROW4; ROW((AX)(R8*4), Z8, Z9)
#define ROW6 ROW5; ROW((AX)(R11*1), Z10, Z11)

#define LOAD1 MOVQ DX, R13; LOAD(Z0, Z1)
#define LOAD2 LOAD1; LOAD(Z2, Z3)
#define LOAD3 LOAD2; LOAD(Z4, Z5)
#define LOAD4 LOAD3; LOAD(Z6, Z7)
#define LOAD5 LOAD4; LOAD(Z8, Z9)
#define LOAD6 LOAD5; LOAD(Z10, Z11)

#define STORE1 STORE(Z0, Z1)
#define STORE2 STORE1; STORE(Z2, Z3)
#define STORE3 STORE2; STORE(Z4, Z5)
#define STORE4 STORE3; STORE(Z6, Z7)
#define STORE5 STORE4; STORE(Z8, Z9)
#define STORE6 STORE5; STORE(Z10, Z11)

// PRODUCT computes all rows of dst in a block of two vectors.
#define PRODUCT \
	MOVQ dst+0(FP), DX \
	MOVQ a+8(FP), R14 \
	MOVQ b+16(FP), BX \
	MOVQ m+24(FP), R12 \
	MOVQ n+40(FP), R10 \
	MOVQ ai+48(FP), R8 \
	MOVQ at+56(FP), R9 \
	SHLQ $2, R8 \
	SHLQ $2, R9 \
	SHLQ $2, R10 \
	LEAQ (R8)(R8*2), CX \
	LEAQ (R8)(R8*4), R11 \
six: \
	CMPQ R12, $6 \
	JLT  fewer \
	LOAD6 \
	BEGIN \
loop6: \
	TERMS \
	ROW6 \
	NEXT(loop6) \
	STORE6 \
	MOVQ R13, DX \
	LEAQ (R14)(CX*2), R14 \
	SUBQ $6, R12 \
	JMP  six \
fewer: \
	CMPQ R12, $3 \
	JEQ  three \
	JLT  two \
	CMPQ R12, $4 \
	JEQ  four \
	LOAD5 \
	BEGIN \
loop5: \
	TERMS \
	ROW5 \
	NEXT(loop5) \
	STORE5 \
	JMP done \
four: \
	LOAD4 \
	BEGIN \
loop4: \
	TERMS \
	ROW4 \
	NEXT(loop4) \
	STORE4 \
	JMP done \
three: \
	LOAD3 \
	BEGIN \
loop3: \
	TERMS \
	ROW3 \
	NEXT(loop3) \
	STORE3 \
	JMP done \
two: \
	CMPQ R12, $1 \
	JLT  done \
	JEQ  one \
	LOAD2 \
	BEGIN \
loop2: \
	TERMS \
	ROW2 \
	NEXT(loop2) \
	STORE2 \
	JMP done \
one: \
	LOAD1 \
	BEGIN \
loop1: \
	TERMS \
	ROW1 \
	NEXT(loop1) \
	STORE1 \
done: \
	VZEROUPPER \
	RET

// func addProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)
//
// is addProductAVX2 of 32 columns.
TEXT ·addProductHalfAVX512(SB), NOSPLIT, $0-64
	PRODUCT

#undef LOAD
#define LOAD(x, y) \
	VPXORQ x, x, x \
	VPXORQ y, y, y

#undef STORE
#define STORE(x, y) \
	VMULPS  (R13), x, x   \
	VMULPS  64(R13), y, y \
	VMOVUPS x, (R13)      \
	VMOVUPS y, 64(R13)    \
	ADDQ    R10, R13

// func mulProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)
//
// multiplies 32 columns of dst by what addProductHalfAVX512 adds to zeros.
TEXT ·mulProductHalfAVX512(SB), NOSPLIT, $0-64
	PRODUCT
