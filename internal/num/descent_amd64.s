//go:build !purego

#include "textflag.h"

// x - x is 0 where x is finite and NaN elsewhere: Y15 gathers the bits of all.

// func momentumAVX2(x, v, grad *float32, n int, rate, momentum, decay float32) bool
TEXT ·momentumAVX2(SB), NOSPLIT, $0-49
	MOVQ         x+0(FP), DI
	MOVQ         v+8(FP), SI
	MOVQ         grad+16(FP), BX
	MOVQ         n+24(FP), CX
	VBROADCASTSS rate+32(FP), Y10
	VBROADCASTSS momentum+36(FP), Y11
	VBROADCASTSS decay+40(FP), Y12
	VXORPS       Y15, Y15, Y15
	XORQ         AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VMULPS  Y0, Y12, Y1
	VADDPS  (BX)(AX*4), Y1, Y1 // d
	VMULPS  (SI)(AX*4), Y11, Y2
	VADDPS  Y1, Y2, Y2
	VMOVUPS Y2, (SI)(AX*4)
	VMULPS  Y2, Y10, Y2
	VSUBPS  Y2, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	VSUBPS  Y0, Y0, Y0
	VORPS   Y0, Y15, Y15
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VPTEST  Y15, Y15
	SETEQ   ret+48(FP)
	VZEROUPPER
	RET

// func adamAVX2(x, m, v, grad *float32, n int, a *AdamFactors) bool
TEXT ·adamAVX2(SB), NOSPLIT, $0-49
	MOVQ         x+0(FP), DI
	MOVQ         m+8(FP), SI
	MOVQ         v+16(FP), DX
	MOVQ         grad+24(FP), BX
	MOVQ         n+32(FP), CX
	MOVQ         a+40(FP), R8
	VBROADCASTSS 0(R8), Y6
	VBROADCASTSS 4(R8), Y7
	VBROADCASTSS 8(R8), Y8
	VBROADCASTSS 12(R8), Y9
	VBROADCASTSS 16(R8), Y10
	VBROADCASTSS 20(R8), Y11
	VBROADCASTSS 24(R8), Y12
	VBROADCASTSS 28(R8), Y13
	VBROADCASTSS 32(R8), Y14
	VXORPS       Y15, Y15, Y15
	XORQ         AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VMULPS  Y0, Y7, Y1
	VADDPS  (BX)(AX*4), Y1, Y1 // d
	VMULPS  (SI)(AX*4), Y8, Y2
	VMULPS  Y1, Y9, Y3
	VADDPS  Y3, Y2, Y2
	VMOVUPS Y2, (SI)(AX*4)
	VMULPS  (DX)(AX*4), Y10, Y3
	VMULPS  Y1, Y1, Y1
	VMULPS  Y1, Y11, Y1
	VADDPS  Y1, Y3, Y3
	VMOVUPS Y3, (DX)(AX*4)
	VDIVPS  Y13, Y3, Y3
	VSQRTPS Y3, Y3
	VADDPS  Y14, Y3, Y3
	VDIVPS  Y12, Y2, Y2
	VMULPS  Y2, Y6, Y2
	VDIVPS  Y3, Y2, Y2
	VSUBPS  Y2, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	VSUBPS  Y0, Y0, Y0
	VORPS   Y0, Y15, Y15
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VPTEST  Y15, Y15
	SETEQ   ret+48(FP)
	VZEROUPPER
	RET
