//go:build !purego

#include "textflag.h"

// PLACES puts the addresses of four leaves on the stack: the row's in each list, or that
// of zeros where the place is 0. They are stored as they are loaded, each alone: a load of a
// part of a store may wait for it.
#define PLACES(i) \
	VPMOVZXDQ    (i*4)(R8)(CX*1), Y0 \
	VPADDQ       Y13, Y0, Y0         \
	VPMULUDQ     Y15, Y0, Y1         \
	VPADDQ       (i*8)(R9), Y1, Y1   \
	VBLENDVPD    Y0, Y14, Y1, Y1     \
	VMOVLPS      X1, (i*8+0)(SP)     \
	VMOVHPS      X1, (i*8+8)(SP)     \
	VEXTRACTF128 $1, Y1, X1          \
	VMOVLPS      X1, (i*8+16)(SP)    \
	VMOVHPS      X1, (i*8+24)(SP)

// GROUP sets four vectors to (a + b) + (c + d) of four leaves.
#define GROUP(i, y0, y1, y2, y3) \
	MOVQ    (i*8+0)(SP), R12      \
	MOVQ    (i*8+8)(SP), R13      \
	MOVQ    (i*8+16)(SP), R14     \
	MOVQ    (i*8+24)(SP), R15     \
	VMOVUPS 0(R12)(AX*1), y0      \
	VMOVUPS 32(R12)(AX*1), y1     \
	VMOVUPS 64(R12)(AX*1), y2     \
	VMOVUPS 96(R12)(AX*1), y3     \
	VADDPS  0(R13)(AX*1), y0, y0  \
	VADDPS  32(R13)(AX*1), y1, y1 \
	VADDPS  64(R13)(AX*1), y2, y2 \
	VADDPS  96(R13)(AX*1), y3, y3 \
	VMOVUPS 0(R14)(AX*1), Y4      \
	VMOVUPS 32(R14)(AX*1), Y5     \
	VMOVUPS 64(R14)(AX*1), Y6     \
	VMOVUPS 96(R14)(AX*1), Y7     \
	VADDPS  0(R15)(AX*1), Y4, Y4  \
	VADDPS  32(R15)(AX*1), Y5, Y5 \
	VADDPS  64(R15)(AX*1), Y6, Y6 \
	VADDPS  96(R15)(AX*1), Y7, Y7 \
	ADD4(Y4, Y5, Y6, Y7, y0, y1, y2, y3)

#define ADD4(a, b, c, d, y0, y1, y2, y3) \
	VADDPS a, y0, y0 \
	VADDPS b, y1, y1 \
	VADDPS c, y2, y2 \
	VADDPS d, y3, y3

// func sumRowsAVX2(dst *float32, there uint64, place *[MostRows]uint32, lists *[MostRows]*float32, groups, width int, zeros *float32)
//
// sums the rows of a block that are there: of 1, 2 or 4 groups of four leaves each. width
// is a multiple of 32; neither it nor there is 0.
//   DI dst          BX bits left       R8 place, CX the row's in it
//   R9 lists        R10 groups         R11 bytes of a row, AX within it
TEXT ·sumRowsAVX2(SB), NOSPLIT, $128-56
	MOVQ         dst+0(FP), DI
	MOVQ         there+8(FP), BX
	MOVQ         place+16(FP), R8
	MOVQ         lists+24(FP), R9
	MOVQ         groups+32(FP), R10
	MOVQ         width+40(FP), R11
	SHLQ         $2, R11

row:
	BSFQ         BX, CX
	SHLQ         $6, CX
	VMOVQ        R11, X15
	VPBROADCASTQ X15, Y15
	VPBROADCASTQ zeros+48(FP), Y14
	VPCMPEQD     Y13, Y13, Y13
	PLACES(0)
	CMPQ         R10, $1
	JEQ          placed
	PLACES(4)
	CMPQ         R10, $2
	JEQ          placed
	PLACES(8)
	PLACES(12)

placed:
	XORQ AX, AX

block:
	GROUP(0, Y0, Y1, Y2, Y3)
	CMPQ R10, $1
	JEQ  store
	GROUP(4, Y8, Y9, Y10, Y11)
	ADD4(Y8, Y9, Y10, Y11, Y0, Y1, Y2, Y3)
	CMPQ R10, $2
	JEQ  store
	GROUP(8, Y8, Y9, Y10, Y11)
	GROUP(12, Y12, Y13, Y14, Y15)
	ADD4(Y12, Y13, Y14, Y15, Y8, Y9, Y10, Y11)
	ADD4(Y8, Y9, Y10, Y11, Y0, Y1, Y2, Y3)

store:
	VMOVUPS Y0, 0(DI)(AX*1)
	VMOVUPS Y1, 32(DI)(AX*1)
	VMOVUPS Y2, 64(DI)(AX*1)
	VMOVUPS Y3, 96(DI)(AX*1)
	SUBQ    $-128, AX
	CMPQ    AX, R11
	JLT     block
	ADDQ    R11, DI
	LEAQ    -1(BX), AX
	ANDQ    AX, BX
	JNZ     row
	VZEROUPPER
	RET
