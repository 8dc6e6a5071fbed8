//go:build !purego

#include "textflag.h"

// func quotientsAVX512(r *float64, w, d, below *float32, rows, n int, floor float32)
//
// is quotientsAVX2 where n is a multiple of 16.
TEXT ·quotientsAVX512(SB), NOSPLIT, $0-52
	MOVQ         r+0(FP), DI
	MOVQ         w+8(FP), R8
	MOVQ         d+16(FP), SI
	MOVQ         below+24(FP), BX
	MOVQ         rows+32(FP), DX
	MOVQ         n+40(FP), CX
	VBROADCASTSS floor+48(FP), Z13

row:
	XORQ AX, AX

loop:
	VMAXPS        (BX)(AX*4), Z13, Z0 // g, a NaN too
	VMOVUPS       (R8)(AX*4), Z1
	VMULPS        (SI)(AX*4), Z1, Z1
	VDIVPS        Z0, Z1, Z1
	VCVTPS2PD     Y1, Z2
	VEXTRACTF64X4 $1, Z1, Y1
	VCVTPS2PD     Y1, Z3
	VMOVUPD       Z2, (DI)(AX*8)
	VMOVUPD       Z3, 64(DI)(AX*8)
	ADDQ          $16, AX
	CMPQ          AX, CX
	JLT           loop
	LEAQ          (BX)(CX*4), BX
	LEAQ          (SI)(CX*4), SI
	LEAQ          (DI)(CX*8), DI
	DECQ          DX
	JNZ           row
	VZEROUPPER
	RET
