//go:build !purego

#include "textflag.h"

// SQUARE adds the squared difference between Y8 and four rows of a panel to sum.
#define SQUARE(at, d, sum) \
	VSUBPD at(SI), Y8, d \
	VMULPD d, d, d       \
	VADDPD d, sum, sum

// func squaresAVX2(dst, panel, x *float64, n int)
//
// The sums of 16 rows stay in Y0 to Y3.
TEXT ·squaresAVX2(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   panel+8(FP), SI
	MOVQ   x+16(FP), DX
	MOVQ   n+24(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	TESTQ  CX, CX
	JZ     done

loop:
	VBROADCASTSD (DX), Y8
	SQUARE(0, Y4, Y0)
	SQUARE(32, Y5, Y1)
	SQUARE(64, Y6, Y2)
	SQUARE(96, Y7, Y3)
	ADDQ         $128, SI
	ADDQ         $8, DX
	DECQ         CX
	JNZ          loop

done:
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	VZEROUPPER
	RET

// func addConstantAVX2(v *float64, n int, x float64)
//
// n is a multiple of 8 and not 0.
TEXT ·addConstantAVX2(SB), NOSPLIT, $0-24
	MOVQ         v+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSD x+16(FP), Y15

eight:
	VADDPD  (DI), Y15, Y0
	VADDPD  32(DI), Y15, Y1
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ    $64, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET

// func addSquaresAVX2(v, y *float64, n int, x float64)
//
// n is a multiple of 8 and not 0.
TEXT ·addSquaresAVX2(SB), NOSPLIT, $0-32
	MOVQ         v+0(FP), DI
	MOVQ         y+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD x+24(FP), Y15

eight:
	VSUBPD  (SI), Y15, Y0
	VSUBPD  32(SI), Y15, Y1
	VMULPD  Y0, Y0, Y0
	VMULPD  Y1, Y1, Y1
	VADDPD  (DI), Y0, Y0
	VADDPD  32(DI), Y1, Y1
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ    $64, SI
	ADDQ    $64, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET
