//go:build !purego

#include "textflag.h"

// Registers:
//   DI dst          BX bits left       CX the row's number, then its bytes in place
//   SI has          DX the row's lists R8 place
//   R9 lists        R10 groups         R11 bytes of a row, AX within it
//   R15 zeros       R12 to R14 rows of lists
// V0 to V15 are the vectors, of W1 bytes. A block is four of them wide.

// ROW sets a register to the address of the row in list i, or to that of zeros where the list lacks it.
#define ROW(i, reg) \
	MOVL    ((i)*4)(R8)(CX*1), reg \
	IMULQ   R11, reg             \
	ADDQ    ((i)*8)(R9), reg     \
	BTL     $(i), DX             \
	CMOVQCC R15, reg

// LONE sets a register to the address of the row in the list whose number it has.
#define LONE(reg) \
	MOVL  (R14)(reg*4), R13 \
	IMULQ R11, R13          \
	ADDQ  (R9)(reg*8), R13  \
	MOVQ  R13, reg

#define LOAD4(at, a, b, c, d) \
	VMOVUPS 0(at)(AX*1), a  \
	VMOVUPS W1(at)(AX*1), b \
	VMOVUPS W2(at)(AX*1), c \
	VMOVUPS W3(at)(AX*1), d

#define PLUS4(at, a, b, c, d) \
	VADDPS 0(at)(AX*1), a, a  \
	VADDPS W1(at)(AX*1), b, b \
	VADDPS W2(at)(AX*1), c, c \
	VADDPS W3(at)(AX*1), d, d

#define ADD4(a, b, c, d, y0, y1, y2, y3) \
	VADDPS a, y0, y0 \
	VADDPS b, y1, y1 \
	VADDPS c, y2, y2 \
	VADDPS d, y3, y3

#define STORE4 \
	VMOVUPS V0, 0(DI)(AX*1)  \
	VMOVUPS V1, W1(DI)(AX*1) \
	VMOVUPS V2, W2(DI)(AX*1) \
	VMOVUPS V3, W3(DI)(AX*1)

// GROUP sets four vectors to (a + b) + (c + d) of four leaves, the first of which is of list i.
#define GROUP(i, y0, y1, y2, y3) \
	ROW(i+0, R12)                \
	ROW(i+1, R13)                \
	LOAD4(R12, y0, y1, y2, y3)   \
	PLUS4(R13, y0, y1, y2, y3)   \
	ROW(i+2, R12)                \
	ROW(i+3, R13)                \
	LOAD4(R12, V4, V5, V6, V7)   \
	PLUS4(R13, V4, V5, V6, V7)   \
	ADD4(V4, V5, V6, V7, y0, y1, y2, y3)

// SUM takes row after row: one that a single list has is copied, one of two lists is their sum, and
// others are sums of 1, 2 or 4 groups.
#define SUM \
	MOVQ dst+0(FP), DI          \
	MOVQ there+8(FP), BX        \
	MOVQ has+16(FP), SI         \
	MOVQ place+24(FP), R8       \
	MOVQ lists+32(FP), R9       \
	MOVQ groups+40(FP), R10     \
	MOVQ width+48(FP), R11      \
	MOVQ zeros+56(FP), R15      \
	SHLQ $2, R11                \
row:                            \
	BSFQ    BX, CX              \
	MOVWLZX (SI)(CX*2), DX      \
	SHLQ    $6, CX              \
	XORL    AX, AX              \
	LEAL    -1(DX), R13         \
	ANDL    DX, R13             \
	JNZ     more                \
	BSFL    DX, R12             \
	LEAQ    (R8)(CX*1), R14     \
	LONE(R12)                   \
single:                         \
	LOAD4(R12, V0, V1, V2, V3)  \
	STORE4                      \
	ADDQ    $(4*W1), AX         \
	CMPQ    AX, R11             \
	JLT     single              \
	JMP     next                \
more:                           \
	LEAL    -1(R13), R14        \
	ANDL    R13, R14            \
	JNZ     block               \
	BSFL    DX, R12             \
	BSFL    R13, DX             \
	LEAQ    (R8)(CX*1), R14     \
	LONE(R12)                   \
	LONE(DX)                    \
pair:                           \
	LOAD4(R12, V0, V1, V2, V3)  \
	PLUS4(DX, V0, V1, V2, V3)   \
	STORE4                      \
	ADDQ    $(4*W1), AX         \
	CMPQ    AX, R11             \
	JLT     pair                \
	JMP     next                \
block:                          \
	GROUP(0, V0, V1, V2, V3)    \
	CMPQ    R10, $1             \
	JEQ     store               \
	GROUP(4, V8, V9, V10, V11)  \
	ADD4(V8, V9, V10, V11, V0, V1, V2, V3)     \
	CMPQ    R10, $2             \
	JEQ     store               \
	GROUP(8, V8, V9, V10, V11)  \
	GROUP(12, V12, V13, V14, V15)              \
	ADD4(V12, V13, V14, V15, V8, V9, V10, V11) \
	ADD4(V8, V9, V10, V11, V0, V1, V2, V3)     \
store:                          \
	STORE4                      \
	ADDQ    $(4*W1), AX         \
	CMPQ    AX, R11             \
	JLT     block               \
next:                           \
	ADDQ    R11, DI             \
	LEAQ    -1(BX), AX          \
	ANDQ    AX, BX              \
	JNZ     row                 \
	VZEROUPPER                  \
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
#define W1 32
#define W2 64
#define W3 96

// func sumRowsAVX2(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups, width int, zeros *float32)
//
// sums the rows of a block that are there, along 1, 2 or 4 groups of four leaves each. width is a multiple of 32; neither
// it nor there is 0.
TEXT ·sumRowsAVX2(SB), NOSPLIT, $0-64
	SUM

#undef V0
#undef V1
#undef V2
#undef V3
#undef V4
#undef V5
#undef V6
#undef V7
#undef V8
#undef V9
#undef V10
#undef V11
#undef V12
#undef V13
#undef V14
#undef V15
#undef W1
#undef W2
#undef W3
#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4
#define V5 Z5
#define V6 Z6
#define V7 Z7
#define V8 Z8
#define V9 Z9
#define V10 Z10
#define V11 Z11
#define V12 Z12
#define V13 Z13
#define V14 Z14
#define V15 Z15
#define W1 64
#define W2 128
#define W3 192

// func sumRowsAVX512(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups, width int, zeros *float32)
//
// is sumRowsAVX2 where width is a multiple of 64.
TEXT ·sumRowsAVX512(SB), NOSPLIT, $0-64
	SUM
