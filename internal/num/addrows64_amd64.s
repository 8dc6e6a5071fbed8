//go:build !purego

#include "textflag.h"

// Masks of the last columns: a window on it has as many ones as there are columns.
DATA few<>+0(SB)/8, $-1
DATA few<>+8(SB)/8, $-1
DATA few<>+16(SB)/8, $0
DATA few<>+24(SB)/8, $0
GLOBL few<>(SB), RODATA|NOPTR, $32

// ROW sets R10 to the next row that is listed.
#define ROW \
	MOVL  (R12), R10 \
	CMPQ  R10, R13   \
	JAE   outside    \
	IMULQ R8, R10    \
	ADDQ  BX, R10    \
	ADDQ  $4, R12

// ADD adds four columns of the row.
#define ADD(at, y, sum) \
	VCVTPS2PD at(R10), y \
	VADDPD    y, sum, sum

// ADDLAST adds the columns that the mask in X15 has.
#define ADDLAST(at, x, y, sum) \
	VMASKMOVPS at(R10), X15, x \
	VCVTPS2PD  x, y            \
	VADDPD     y, sum, sum

// func addRows64AVX2(dst *float64, n int, m *float32, index *uint32, rows, limit int) bool
//
// Neither n nor rows is 0. Up to 16 columns stay in registers for all rows. It returns false
// if there is no such row.
TEXT ·addRows64AVX2(SB), NOSPLIT, $0-49
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ m+16(FP), BX
	MOVQ limit+40(FP), R13
	LEAQ (CX*4), R8

block:
	MOVQ index+24(FP), R12
	MOVQ rows+32(FP), R11
	CMPQ CX, $16
	JLT  rest
	VMOVUPD 0(DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3

sixteen:
	ROW
	ADD(0, Y4, Y0)
	ADD(16, Y5, Y1)
	ADD(32, Y6, Y2)
	ADD(48, Y7, Y3)
	DECQ R11
	JNZ  sixteen
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ $128, DI
	ADDQ $64, BX
	SUBQ $16, CX
	JNZ  block
	JMP  done

	// 1 to 15 columns: whole vectors of four, and a last one of one to four.
rest:
	LEAQ -1(CX), AX
	ANDQ $3, AX          // columns of the last vector, less one
	NEGQ AX
	LEAQ few<>+12(SB), DX
	VMOVUPS (DX)(AX*4), X15
	VPMOVSXDQ X15, Y14
	CMPQ CX, $4
	JLE  one
	CMPQ CX, $8
	JLE  two
	CMPQ CX, $12
	JLE  three
	VMOVUPD 0(DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMASKMOVPD 96(DI), Y14, Y3

fours:
	ROW
	ADD(0, Y4, Y0)
	ADD(16, Y5, Y1)
	ADD(32, Y6, Y2)
	ADDLAST(48, X7, Y7, Y3)
	DECQ R11
	JNZ  fours
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMASKMOVPD Y3, Y14, 96(DI)
	JMP  done

three:
	VMOVUPD 0(DI), Y0
	VMOVUPD 32(DI), Y1
	VMASKMOVPD 64(DI), Y14, Y2

threes:
	ROW
	ADD(0, Y4, Y0)
	ADD(16, Y5, Y1)
	ADDLAST(32, X6, Y6, Y2)
	DECQ R11
	JNZ  threes
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMASKMOVPD Y2, Y14, 64(DI)
	JMP  done

two:
	VMOVUPD 0(DI), Y0
	VMASKMOVPD 32(DI), Y14, Y1

twos:
	ROW
	ADD(0, Y4, Y0)
	ADDLAST(16, X5, Y5, Y1)
	DECQ R11
	JNZ  twos
	VMOVUPD Y0, 0(DI)
	VMASKMOVPD Y1, Y14, 32(DI)
	JMP  done

one:
	VMASKMOVPD 0(DI), Y14, Y0

ones:
	ROW
	ADDLAST(0, X4, Y4, Y0)
	DECQ R11
	JNZ  ones
	VMASKMOVPD Y0, Y14, 0(DI)

done:
	VZEROUPPER
	MOVB $1, ret+48(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+48(FP)
	RET
