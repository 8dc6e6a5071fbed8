//go:build !purego

#include "textflag.h"

DATA noRow<>+0(SB)/4, $-1
GLOBL noRow<>(SB), RODATA|NOPTR, $4

// func momentumRowsAVX2(x, v, values *float32, index *uint32, rows, present, width int, factor, rate, momentum, decay float32) bool
//
// width is a multiple of 8; neither it nor rows is 0. A row that is not there is x's with
// all bits masked off, so that no branch depends on it.
//   DI x, SI v, BX values at their rows   R8 the next index, R9 where indices end
//   R10 the row, R11 rows                 R12 the next row that is there
//   R13 bytes of a row, CX within it      R14 all ones where the row is there
TEXT ·momentumRowsAVX2(SB), NOSPLIT, $0-73
	MOVQ         x+0(FP), DI
	MOVQ         v+8(FP), SI
	MOVQ         values+16(FP), BX
	MOVQ         index+24(FP), R8
	MOVQ         rows+32(FP), R11
	MOVQ         present+40(FP), R9
	MOVQ         width+48(FP), R13
	VBROADCASTSS factor+56(FP), Y9
	VBROADCASTSS rate+60(FP), Y10
	VBROADCASTSS momentum+64(FP), Y11
	VBROADCASTSS decay+68(FP), Y12
	VXORPS       Y15, Y15, Y15
	LEAQ         (R8)(R9*4), R9
	LEAQ         noRow<>(SB), R15
	SHLQ         $2, R13
	XORQ         R10, R10

row:
	MOVQ         R8, AX
	CMPQ         R8, R9
	CMOVQEQ      R15, AX
	MOVL         (AX), R12
	XORL         R14, R14
	CMPL         R12, R10
	SETEQ        R14
	LEAQ         (R8)(R14*4), R8
	NEGQ         R14
	VMOVQ        R14, X14
	VPBROADCASTD X14, Y14
	MOVQ         BX, AX
	TESTQ        R14, R14
	CMOVQEQ      DI, AX
	ANDQ         R13, R14
	ADDQ         R14, BX
	XORQ         CX, CX

vector:
	VMOVUPS (DI)(CX*1), Y0
	VANDPS  (AX)(CX*1), Y14, Y2
	VMULPS  Y2, Y9, Y2
	VMULPS  Y0, Y12, Y1
	VADDPS  Y2, Y1, Y1          // d
	VMULPS  (SI)(CX*1), Y11, Y2
	VADDPS  Y1, Y2, Y2
	VMOVUPS Y2, (SI)(CX*1)
	VMULPS  Y2, Y10, Y2
	VSUBPS  Y2, Y0, Y0
	VMOVUPS Y0, (DI)(CX*1)
	VSUBPS  Y0, Y0, Y0          // 0 where x is finite, else NaN
	VORPS   Y0, Y15, Y15
	ADDQ    $32, CX
	CMPQ    CX, R13
	JLT     vector
	ADDQ    R13, DI
	ADDQ    R13, SI
	INCQ    R10
	CMPQ    R10, R11
	JLT     row
	VPTEST  Y15, Y15
	SETEQ   ret+72(FP)
	VZEROUPPER
	RET
