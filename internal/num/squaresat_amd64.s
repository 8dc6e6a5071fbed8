//go:build !purego

#include "textflag.h"

// SQUARES sets y to the squared differences of four columns of a row.
#define SQUARES(row, y) \
	VCVTPS2PD (row)(AX*4), y \
	VMULPD    Y9, y, y       \
	VSUBPD    y, Y8, y       \
	VMULPD    y, y, y

// func squaresAtAVX2(sums, x, scale *float64, a, b, c, d *float32, n int)
//
// n is a multiple of 4 and not 0. The squares of four columns are transposed, so that the sums of four rows
// take one column after another.
TEXT ·squaresAtAVX2(SB), NOSPLIT, $0-64
	MOVQ   sums+0(FP), DI
	MOVQ   x+8(FP), SI
	MOVQ   scale+16(FP), BX
	MOVQ   a+24(FP), R8
	MOVQ   b+32(FP), R9
	MOVQ   c+40(FP), R10
	MOVQ   d+48(FP), R11
	MOVQ   n+56(FP), CX
	XORQ   AX, AX
	VXORPD Y15, Y15, Y15

four:
	VMOVUPD    (SI)(AX*8), Y8
	VMOVUPD    (BX)(AX*8), Y9
	SQUARES(R8, Y0)
	SQUARES(R9, Y1)
	SQUARES(R10, Y2)
	SQUARES(R11, Y3)
	VUNPCKLPD  Y1, Y0, Y4
	VUNPCKHPD  Y1, Y0, Y5
	VUNPCKLPD  Y3, Y2, Y6
	VUNPCKHPD  Y3, Y2, Y7
	VPERM2F128 $0x20, Y6, Y4, Y10
	VPERM2F128 $0x20, Y7, Y5, Y11
	VPERM2F128 $0x31, Y6, Y4, Y12
	VPERM2F128 $0x31, Y7, Y5, Y13
	VADDPD     Y10, Y15, Y15
	VADDPD     Y11, Y15, Y15
	VADDPD     Y12, Y15, Y15
	VADDPD     Y13, Y15, Y15
	ADDQ       $4, AX
	CMPQ       AX, CX
	JLT        four
	VMOVUPD    Y15, (DI)
	VZEROUPPER
	RET
