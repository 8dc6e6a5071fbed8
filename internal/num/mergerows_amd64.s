//go:build !purego

#include "textflag.h"

// func mergeRowsAVX2(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width, room int) (i, j, n int)
//
// width is a multiple of 8 and not 0; dst has room for so many rows. A row that one list lacks is the other's with all
// bits masked off, so that no branch depends on which has it.
TEXT ·mergeRowsAVX2(SB), NOSPLIT, $8-104
	MOVQ dst+0(FP), DI
	MOVQ index+8(FP), R12
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), BX
	MOVQ aIndex+32(FP), R8
	MOVQ bIndex+40(FP), R9
	MOVQ aRows+48(FP), R10
	MOVQ bRows+56(FP), R11
	MOVQ width+64(FP), R13
	LEAQ (R8)(R10*4), R10 // the lists' ends
	LEAQ (R9)(R11*4), R11
	SHLQ $2, R13
	MOVQ room+72(FP), AX
	LEAQ (R12)(AX*4), AX
	MOVQ AX, end-8(SP)

row:
	CMPQ R12, end-8(SP)
	JEQ  done
	CMPQ R8, R10
	JEQ  done
	CMPQ R9, R11
	JEQ  done
	MOVL (R8), AX
	MOVL (R9), CX
	XORL R14, R14
	XORL R15, R15
	MOVL AX, DX
	CMPL AX, CX
	CMOVLHI CX, DX
	SETLS R14         // a has the row
	SETCC R15         // b has it
	MOVL DX, (R12)
	ADDQ $4, R12
	LEAQ (R8)(R14*4), R8
	LEAQ (R9)(R15*4), R9
	NEGQ R14
	NEGQ R15
	VMOVQ R14, X14
	VMOVQ R15, X15
	VPBROADCASTD X14, Y14
	VPBROADCASTD X15, Y15
	MOVQ SI, AX
	MOVQ BX, CX
	TESTQ R14, R14
	CMOVQEQ BX, AX
	TESTQ R15, R15
	CMOVQEQ SI, CX
	ANDQ R13, R14
	ANDQ R13, R15
	ADDQ R14, SI
	ADDQ R15, BX
	XORQ DX, DX

vector:
	VANDPS  (AX)(DX*1), Y14, Y0
	VANDPS  (CX)(DX*1), Y15, Y1
	VADDPS  Y1, Y0, Y0
	VMOVUPS Y0, (DI)(DX*1)
	ADDQ    $32, DX
	CMPQ    DX, R13
	JLT     vector
	ADDQ    R13, DI
	JMP     row

done:
	VZEROUPPER
	SUBQ aIndex+32(FP), R8
	SUBQ bIndex+40(FP), R9
	SUBQ index+8(FP), R12
	SHRQ $2, R8
	SHRQ $2, R9
	SHRQ $2, R12
	MOVQ R8, i+80(FP)
	MOVQ R9, j+88(FP)
	MOVQ R12, n+96(FP)
	RET
