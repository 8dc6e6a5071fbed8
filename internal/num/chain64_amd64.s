//go:build !purego

#include "textflag.h"

// func dot64AVX2(s, a, b *float64, n int)
//
// n is a positive multiple of 4. The four sums are the lanes of one vector.
TEXT ·dot64AVX2(SB), NOSPLIT, $0-32
	MOVQ    s+0(FP), DI
	MOVQ    a+8(FP), SI
	MOVQ    b+16(FP), DX
	MOVQ    n+24(FP), CX
	VMOVUPD (DI), Y0
	XORQ    AX, AX

loop:
	VMOVUPD (SI)(AX*8), Y1
	VMULPD  (DX)(AX*8), Y1, Y1
	VADDPD  Y1, Y0, Y0
	ADDQ    $4, AX
	CMPQ    AX, CX
	JLT     loop
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func addScaled64AVX2(dst *float64, a float64, x *float64, n int)
//
// n is a positive multiple of 8.
TEXT ·addScaled64AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	VBROADCASTSD a+8(FP), Y8
	MOVQ         x+16(FP), SI
	MOVQ         n+24(FP), CX
	XORQ         AX, AX

loop:
	VMULPD  (SI)(AX*8), Y8, Y0
	VMULPD  32(SI)(AX*8), Y8, Y1
	VADDPD  (DI)(AX*8), Y0, Y0
	VADDPD  32(DI)(AX*8), Y1, Y1
	VMOVUPD Y0, (DI)(AX*8)
	VMOVUPD Y1, 32(DI)(AX*8)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VZEROUPPER
	RET
