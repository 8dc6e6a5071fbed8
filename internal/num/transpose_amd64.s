//go:build !purego

#include "textflag.h"

// func transposeAVX2(dst *float32, to int, src *float32, from, rows, columns int)
//
// takes eight rows of four columns at a time: rows is a multiple of 8, columns of 4,
// neither is 0.
TEXT ·transposeAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ to+8(FP), R10
	MOVQ src+16(FP), SI
	MOVQ from+24(FP), R8
	MOVQ rows+32(FP), DX
	SHLQ $2, R8
	SHLQ $2, R10
	LEAQ (R8)(R8*2), R9
	LEAQ (R10)(R10*2), R11

eight:
	MOVQ columns+40(FP), CX
	MOVQ DI, AX
	MOVQ SI, BX

four:
	LEAQ        (BX)(R8*4), R12
	VMOVUPS     (BX), X0
	VMOVUPS     (BX)(R8*1), X1
	VMOVUPS     (BX)(R8*2), X2
	VMOVUPS     (BX)(R9*1), X3
	VINSERTF128 $1, (R12), Y0, Y0
	VINSERTF128 $1, (R12)(R8*1), Y1, Y1
	VINSERTF128 $1, (R12)(R8*2), Y2, Y2
	VINSERTF128 $1, (R12)(R9*1), Y3, Y3
	VUNPCKLPS   Y1, Y0, Y4
	VUNPCKHPS   Y1, Y0, Y5
	VUNPCKLPS   Y3, Y2, Y6
	VUNPCKHPS   Y3, Y2, Y7
	VUNPCKLPD   Y6, Y4, Y8
	VUNPCKHPD   Y6, Y4, Y9
	VUNPCKLPD   Y7, Y5, Y10
	VUNPCKHPD   Y7, Y5, Y11
	VMOVUPS     Y8, (AX)
	VMOVUPS     Y9, (AX)(R10*1)
	VMOVUPS     Y10, (AX)(R10*2)
	VMOVUPS     Y11, (AX)(R11*1)
	LEAQ        (AX)(R10*4), AX
	ADDQ        $16, BX
	SUBQ        $4, CX
	JGT         four
	ADDQ        $32, DI
	LEAQ        (SI)(R8*8), SI
	SUBQ        $8, DX
	JGT         eight
	VZEROUPPER
	RET
