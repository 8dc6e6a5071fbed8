//go:build !purego

#include "textflag.h"

// Masks of the last columns: a window on it has as many ones as there are columns.
DATA columns<>+0(SB)/8, $-1
DATA columns<>+8(SB)/8, $-1
DATA columns<>+16(SB)/8, $-1
DATA columns<>+24(SB)/8, $-1
DATA columns<>+32(SB)/8, $0
DATA columns<>+40(SB)/8, $0
DATA columns<>+48(SB)/8, $0
DATA columns<>+56(SB)/8, $0
GLOBL columns<>(SB), RODATA|NOPTR, $64

// Registers of both products:
//   DI dst at this block of columns    DX dst at this group of rows
//   SI a                               R14 a at this group, AX within it
//   BX b at this block                 R13 b within it
//   R8 bytes from a[i,t] to a[i+1,t]   R9 from a[i,t] to a[i,t+1]
//   R10 bytes of a row of dst          R11 of b
//   R12 rows left                      R15 terms left
//   CX 3·R8                            left-8(SP) columns left
// In addTile SI is what is fetched ahead, and DI how far it goes on for each term.
// V0 to V15 are the vectors, of W1 bytes. A block is four of them wide, with three, two or one rows at a time: at most twelve
// sums in V0 to V11, each of which takes its terms in order. Four rows are two and two:
// a row alone waits for its sums.

#define LOAD4(at, a, b, c, d) \
	VMOVUPS 0 at, a  \
	VMOVUPS W1 at, b \
	VMOVUPS W2 at, c \
	VMOVUPS W3 at, d

#define STORE4(at, a, b, c, d) \
	VMOVUPS a, 0 at  \
	VMOVUPS b, W1 at \
	VMOVUPS c, W2 at \
	VMOVUPS d, W3 at

#define BEGIN(terms) \
	MOVQ R14, AX \
	MOVQ BX, R13 \
	MOVQ terms, R15

#define NEXT(loop) \
	ADDQ R9, AX   \
	ADDQ R11, R13 \
	DECQ R15      \
	JNZ  loop

#define STEP3(FMA, off, a, b, c) \
	VMOVUPS off(R13), V15 \
	FMA     V15, V12, a   \
	FMA     V15, V13, b   \
	FMA     V15, V14, c

#define STEP2(FMA, off, a, b) \
	VMOVUPS off(R13), V15 \
	FMA     V15, V12, a   \
	FMA     V15, V13, b

// BLOCK computes all rows of dst in a block of four vectors.
#define BLOCK(BROADCAST, FMA, terms, rows, three, two, one, loop3, loop2, loop1, end) \
rows: \
	CMPQ R12, $3 \
	JLT  two     \
	CMPQ R12, $4 \
	JEQ  two     \
three: \
	LOAD4((DX), V0, V1, V2, V3)            \
	LOAD4((DX)(R10*1), V4, V5, V6, V7)     \
	LOAD4((DX)(R10*2), V8, V9, V10, V11)   \
	BEGIN(terms) \
loop3: \
	BROADCAST (AX), V12       \
	BROADCAST (AX)(R8*1), V13 \
	BROADCAST (AX)(R8*2), V14 \
	STEP3(FMA, 0, V0, V4, V8)   \
	STEP3(FMA, W1, V1, V5, V9)  \
	STEP3(FMA, W2, V2, V6, V10) \
	STEP3(FMA, W3, V3, V7, V11) \
	AHEAD                       \
	NEXT(loop3)                 \
	STORE4((DX), V0, V1, V2, V3)          \
	STORE4((DX)(R10*1), V4, V5, V6, V7)   \
	STORE4((DX)(R10*2), V8, V9, V10, V11) \
	LEAQ (DX)(R10*2), DX \
	ADDQ R10, DX         \
	ADDQ CX, R14         \
	SUBQ $3, R12         \
	JMP  rows            \
two: \
	CMPQ R12, $2 \
	JLT  one     \
	LOAD4((DX), V0, V1, V2, V3)        \
	LOAD4((DX)(R10*1), V4, V5, V6, V7) \
	BEGIN(terms) \
loop2: \
	BROADCAST (AX), V12       \
	BROADCAST (AX)(R8*1), V13 \
	STEP2(FMA, 0, V0, V4)     \
	STEP2(FMA, W1, V1, V5)    \
	STEP2(FMA, W2, V2, V6)    \
	STEP2(FMA, W3, V3, V7)    \
	AHEAD                     \
	NEXT(loop2)               \
	STORE4((DX), V0, V1, V2, V3)        \
	STORE4((DX)(R10*1), V4, V5, V6, V7) \
	LEAQ (DX)(R10*2), DX \
	LEAQ (R14)(R8*2), R14 \
	SUBQ $2, R12         \
	JMP  rows            \
one: \
	TESTQ R12, R12 \
	JZ    end      \
	LOAD4((DX), V0, V1, V2, V3) \
	BEGIN(terms) \
loop1: \
	BROADCAST (AX), V12       \
	FMA       0(R13), V12, V0  \
	FMA       W1(R13), V12, V1 \
	FMA       W2(R13), V12, V2 \
	FMA       W3(R13), V12, V3 \
	NEXT(loop1)               \
	STORE4((DX), V0, V1, V2, V3) \
end:

// MASKED4 computes four rows of dst in the one vector that Y15 masks.
#define MASKED4(BROADCAST, FMA, terms, loop) \
	LEAQ       (DX)(R10*2), R13 \
	VMASKMOVPS (DX), Y15, Y0         \
	VMASKMOVPS (DX)(R10*1), Y15, Y1  \
	VMASKMOVPS (R13), Y15, Y2        \
	VMASKMOVPS (R13)(R10*1), Y15, Y3 \
	BEGIN(terms) \
loop: \
	VMASKMOVPS (R13), Y15, Y14   \
	BROADCAST  (AX), Y8          \
	BROADCAST  (AX)(R8*1), Y9    \
	BROADCAST  (AX)(R8*2), Y10   \
	BROADCAST  (AX)(CX*1), Y11   \
	FMA        Y14, Y8, Y0       \
	FMA        Y14, Y9, Y1       \
	FMA        Y14, Y10, Y2      \
	FMA        Y14, Y11, Y3      \
	NEXT(loop)                   \
	LEAQ       (DX)(R10*2), R13  \
	VMASKMOVPS Y0, Y15, (DX)         \
	VMASKMOVPS Y1, Y15, (DX)(R10*1)  \
	VMASKMOVPS Y2, Y15, (R13)        \
	VMASKMOVPS Y3, Y15, (R13)(R10*1) \
	LEAQ       (DX)(R10*4), DX  \
	LEAQ       (R14)(R8*4), R14

// MASKED1 is MASKED4 of one row.
#define MASKED1(BROADCAST, FMA, terms, loop) \
	VMASKMOVPS (DX), Y15, Y0 \
	BEGIN(terms) \
loop: \
	VMASKMOVPS (R13), Y15, Y14 \
	BROADCAST  (AX), Y8        \
	FMA        Y14, Y8, Y0     \
	NEXT(loop)                 \
	VMASKMOVPS Y0, Y15, (DX)   \
	ADDQ       R10, DX         \
	ADDQ       R8, R14

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
#define W1 32
#define W2 64
#define W3 96

#define AHEAD

// func addProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)
//
// adds to the first columns of dst.
TEXT ·addProductAVX2(SB), NOSPLIT, $8-72
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ n+40(FP), R10
	MOVQ ai+48(FP), R8
	MOVQ at+56(FP), R9
	MOVQ columns+64(FP), R11
	MOVQ R11, left-8(SP)
	SHLQ $2, R8
	SHLQ $2, R9
	SHLQ $2, R10
	MOVQ R10, R11
	LEAQ (R8)(R8*2), CX

block:
	CMPQ left-8(SP), $32
	JLT  masked
	MOVQ m+24(FP), R12
	MOVQ SI, R14
	MOVQ DI, DX
	BLOCK(VBROADCASTSS, VFMADD231PS, k+32(FP), rows, three, two, one, loop3, loop2, loop1, end)
	ADDQ $128, DI
	ADDQ $128, BX
	SUBQ $32, left-8(SP)
	JMP  block

masked:
	MOVQ left-8(SP), R13
	TESTQ R13, R13
	JLE  done
	MOVQ $8, AX
	CMPQ R13, AX
	CMOVQGT AX, R13
	SUBQ R13, AX
	LEAQ columns<>(SB), R13
	VMOVUPS (R13)(AX*4), Y15
	MOVQ m+24(FP), R12
	MOVQ SI, R14
	MOVQ DI, DX

masked4:
	CMPQ R12, $4
	JLT  masked1
	MASKED4(VBROADCASTSS, VFMADD231PS, k+32(FP), loopMasked4)
	SUBQ $4, R12
	JMP  masked4

masked1:
	TESTQ R12, R12
	JZ   maskedEnd
	MASKED1(VBROADCASTSS, VFMADD231PS, k+32(FP), loopMasked1)
	DECQ R12
	JMP  masked1

maskedEnd:
	ADDQ $32, DI
	ADDQ $32, BX
	SUBQ $8, left-8(SP)
	JMP  masked

done:
	VZEROUPPER
	RET

#undef LOAD4
#define LOAD4(at, a, b, c, d) \
	VXORPS a, a, a \
	VXORPS b, b, b \
	VXORPS c, c, c \
	VXORPS d, d, d

#undef STORE4
#define STORE4(at, a, b, c, d) \
	VMULPS  0 at, a, a  \
	VMULPS  W1 at, b, b \
	VMULPS  W2 at, c, c \
	VMULPS  W3 at, d, d \
	VMOVUPS a, 0 at     \
	VMOVUPS b, W1 at    \
	VMOVUPS c, W2 at    \
	VMOVUPS d, W3 at

// func mulProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)
//
// multiplies the first columns of dst, a multiple of 32, by what addProductAVX2 adds to
// zeros. None of m, k and columns is 0.
TEXT ·mulProductAVX2(SB), NOSPLIT, $8-72
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ n+40(FP), R10
	MOVQ ai+48(FP), R8
	MOVQ at+56(FP), R9
	MOVQ columns+64(FP), R11
	MOVQ R11, left-8(SP)
	SHLQ $2, R8
	SHLQ $2, R9
	SHLQ $2, R10
	MOVQ R10, R11
	LEAQ (R8)(R8*2), CX

block:
	MOVQ m+24(FP), R12
	MOVQ SI, R14
	MOVQ DI, DX
	BLOCK(VBROADCASTSS, VFMADD231PS, k+32(FP), rows, three, two, one, loop3, loop2, loop1, end)
	ADDQ $128, DI
	ADDQ $128, BX
	SUBQ $32, left-8(SP)
	JNZ  block
	VZEROUPPER
	RET

#undef LOAD4
#define LOAD4(at, a, b, c, d) \
	VMOVUPS 0 at, a  \
	VMOVUPS W1 at, b \
	VMOVUPS W2 at, c \
	VMOVUPS W3 at, d

#undef STORE4
#define STORE4(at, a, b, c, d) \
	VMOVUPS a, 0 at  \
	VMOVUPS b, W1 at \
	VMOVUPS c, W2 at \
	VMOVUPS d, W3 at

#undef AHEAD
#define AHEAD \
	PREFETCHT0 (SI) \
	ADDQ       DI, SI

// func addTileAVX2(dst, a, tile *float64, m, k, n, columns, stride int, ahead *float32, step int)
//
// adds a (m×stride, its first k columns) times the tile (k×columns) to the first
// columns, 16 or 4, of dst (m×n). Of 16 columns it fetches what is ahead, step bytes on
// for each term.
TEXT ·addTileAVX2(SB), NOSPLIT, $0-80
	MOVQ ahead+64(FP), SI
	MOVQ step+72(FP), DI
	MOVQ dst+0(FP), DX
	MOVQ a+8(FP), R14
	MOVQ tile+16(FP), BX
	MOVQ m+24(FP), R12
	MOVQ n+40(FP), R10
	MOVQ columns+48(FP), R11
	MOVQ stride+56(FP), R8
	MOVQ $8, R9
	SHLQ $3, R8
	SHLQ $3, R10
	SHLQ $3, R11
	LEAQ (R8)(R8*2), CX
	CMPQ R11, $128
	JNE  narrow
	BLOCK(VBROADCASTSD, VFMADD231PD, k+32(FP), rows, three, two, one, loop3, loop2, loop1, end)
	VZEROUPPER
	RET

narrow:
	VPCMPEQD Y15, Y15, Y15

masked4:
	CMPQ R12, $4
	JLT  masked1
	MASKED4(VBROADCASTSD, VFMADD231PD, k+32(FP), loopMasked4)
	SUBQ $4, R12
	JMP  masked4

masked1:
	TESTQ R12, R12
	JZ   done
	MASKED1(VBROADCASTSD, VFMADD231PD, k+32(FP), loopMasked1)
	DECQ R12
	JMP  masked1

done:
	VZEROUPPER
	RET

// func turnAVX2(turned, b *float32, k, columns, stride int)
//
// sets turned (k×columns) to the transpose of the first k columns of b, which has columns
// rows of stride values each; both have room for k rounded up to a multiple of 4. columns
// is a multiple of 8.
TEXT ·turnAVX2(SB), NOSPLIT, $0-40
	MOVQ turned+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ columns+24(FP), DX
	MOVQ stride+32(FP), R8
	LEAQ (DX*4), R10       // bytes of a row of turned
	LEAQ (R10)(R10*2), R11
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R9

eight:
	MOVQ k+16(FP), CX
	MOVQ DI, AX
	MOVQ SI, BX
	LEAQ (SI)(R8*4), R12

four:
	VMOVDQU     (BX), X0
	VMOVDQU     (BX)(R8*1), X1
	VMOVDQU     (BX)(R8*2), X2
	VMOVDQU     (BX)(R9*1), X3
	VINSERTI128 $1, (R12), Y0, Y0
	VINSERTI128 $1, (R12)(R8*1), Y1, Y1
	VINSERTI128 $1, (R12)(R8*2), Y2, Y2
	VINSERTI128 $1, (R12)(R9*1), Y3, Y3
	VPUNPCKLDQ  Y1, Y0, Y4
	VPUNPCKHDQ  Y1, Y0, Y5
	VPUNPCKLDQ  Y3, Y2, Y6
	VPUNPCKHDQ  Y3, Y2, Y7
	VPUNPCKLQDQ Y6, Y4, Y8  // column 0 of b
	VPUNPCKHQDQ Y6, Y4, Y9  // 1
	VPUNPCKLQDQ Y7, Y5, Y10 // 2
	VPUNPCKHQDQ Y7, Y5, Y11 // 3
	VMOVDQU     Y8, (AX)
	VMOVDQU     Y9, (AX)(R10*1)
	VMOVDQU     Y10, (AX)(R10*2)
	VMOVDQU     Y11, (AX)(R11*1)
	LEAQ        (AX)(R10*4), AX
	ADDQ        $16, BX
	ADDQ        $16, R12
	SUBQ        $4, CX
	JGT         four
	ADDQ        $32, DI
	LEAQ        (SI)(R8*8), SI
	SUBQ        $8, DX
	JGT         eight
	VZEROUPPER
	RET

// func widenAVX2(wide *float64, v *float32, n int)
//
// n is a multiple of 16. A load widens at half the price of a register.
TEXT ·widenAVX2(SB), NOSPLIT, $0-24
	MOVQ wide+0(FP), DI
	MOVQ v+8(FP), SI
	MOVQ n+16(FP), CX

sixteen:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VCVTPS2PD 32(SI), Y2
	VCVTPS2PD 48(SI), Y3
	VMOVUPD   Y0, (DI)
	VMOVUPD   Y1, 32(DI)
	VMOVUPD   Y2, 64(DI)
	VMOVUPD   Y3, 96(DI)
	ADDQ      $64, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JGT       sixteen
	VZEROUPPER
	RET

#define WIDEN4(x, y, low, high) \
	VCVTPS2PD    x, Y12     \
	VMOVUPD      Y12, low   \
	VEXTRACTF128 $1, y, X13 \
	VCVTPS2PD    X13, Y13   \
	VMOVUPD      Y13, high

// func widenFourAVX2(tile *float64, b *float32, k, stride int)
//
// sets the tile (k×4) to the transpose of the first k columns of b, widened; b has four rows
// of stride values, and both have room for k rounded up to a multiple of 8.
TEXT ·widenFourAVX2(SB), NOSPLIT, $0-32
	MOVQ tile+0(FP), AX
	MOVQ b+8(FP), BX
	MOVQ k+16(FP), CX
	MOVQ stride+24(FP), R8
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R9

eight:
	VMOVUPS   (BX), Y0
	VMOVUPS   (BX)(R8*1), Y1
	VMOVUPS   (BX)(R8*2), Y2
	VMOVUPS   (BX)(R9*1), Y3
	VUNPCKLPS Y1, Y0, Y4
	VUNPCKHPS Y1, Y0, Y5
	VUNPCKLPS Y3, Y2, Y6
	VUNPCKHPS Y3, Y2, Y7
	VUNPCKLPD Y6, Y4, Y8   // columns 0 and 4 of b
	VUNPCKHPD Y6, Y4, Y9   // 1 and 5
	VUNPCKLPD Y7, Y5, Y10  // 2 and 6
	VUNPCKHPD Y7, Y5, Y11  // 3 and 7
	WIDEN4(X8, Y8, (AX), 128(AX))
	WIDEN4(X9, Y9, 32(AX), 160(AX))
	WIDEN4(X10, Y10, 64(AX), 192(AX))
	WIDEN4(X11, Y11, 96(AX), 224(AX))
	ADDQ      $256, AX
	ADDQ      $32, BX
	SUBQ      $8, CX
	JGT       eight
	VZEROUPPER
	RET

// func transpose64AVX2(dst, m *float64, rows, n int)
//
// sets the first columns of dst (n×rows) to the transpose of the first rows of m (rows×n), as
// many as are a multiple of 4; n is a multiple of 4.
TEXT ·transpose64AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ m+8(FP), SI
	MOVQ rows+16(FP), DX
	MOVQ n+24(FP), R8
	MOVQ DX, R10
	SHLQ $3, R10           // bytes of a row of dst
	LEAQ (R10)(R10*2), R11
	SHLQ $3, R8            // of m
	LEAQ (R8)(R8*2), R9
	SUBQ $4, DX

four:
	MOVQ n+24(FP), CX
	MOVQ SI, BX
	MOVQ DI, AX

block:
	VMOVUPD     (BX), X0
	VMOVUPD     (BX)(R8*1), X1
	VMOVUPD     16(BX), X2
	VMOVUPD     16(BX)(R8*1), X3
	VINSERTF128 $1, (BX)(R8*2), Y0, Y0
	VINSERTF128 $1, (BX)(R9*1), Y1, Y1
	VINSERTF128 $1, 16(BX)(R8*2), Y2, Y2
	VINSERTF128 $1, 16(BX)(R9*1), Y3, Y3
	VUNPCKLPD   Y1, Y0, Y4
	VUNPCKHPD   Y1, Y0, Y5
	VUNPCKLPD   Y3, Y2, Y6
	VUNPCKHPD   Y3, Y2, Y7
	VMOVUPD     Y4, (AX)
	VMOVUPD     Y5, (AX)(R10*1)
	VMOVUPD     Y6, (AX)(R10*2)
	VMOVUPD     Y7, (AX)(R11*1)
	LEAQ        (AX)(R10*4), AX
	ADDQ        $32, BX
	SUBQ        $4, CX
	JGT         block
	LEAQ        (SI)(R8*4), SI
	ADDQ        $32, DI
	SUBQ        $4, DX
	JGE         four
	VZEROUPPER
	RET

// func quotientsAVX2(r *float64, w, d, below *float32, rows, n int, floor float32)
//
// n is a multiple of 8.
TEXT ·quotientsAVX2(SB), NOSPLIT, $0-52
	MOVQ         r+0(FP), DI
	MOVQ         w+8(FP), R8
	MOVQ         d+16(FP), SI
	MOVQ         below+24(FP), BX
	MOVQ         rows+32(FP), DX
	MOVQ         n+40(FP), CX
	VBROADCASTSS floor+48(FP), Y13

row:
	XORQ AX, AX

loop:
	VMOVUPS      (BX)(AX*4), Y0
	VMAXPS       Y0, Y13, Y0 // g, a NaN too
	VMOVUPS      (R8)(AX*4), Y1
	VMULPS       (SI)(AX*4), Y1, Y1
	VDIVPS       Y0, Y1, Y1
	VCVTPS2PD    X1, Y2
	VEXTRACTF128 $1, Y1, X1
	VCVTPS2PD    X1, Y3
	VMOVUPD      Y2, (DI)(AX*8)
	VMOVUPD      Y3, 32(DI)(AX*8)
	ADDQ         $8, AX
	CMPQ         AX, CX
	JLT          loop
	LEAQ         (BX)(CX*4), BX
	LEAQ         (SI)(CX*4), SI
	LEAQ         (DI)(CX*8), DI
	DECQ         DX
	JNZ          row
	VZEROUPPER
	RET
