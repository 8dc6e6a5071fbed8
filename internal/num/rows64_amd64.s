//go:build !purego

#include "textflag.h"

// Registers of the kernels here:
//   DI dst, CX columns left, BX m, R8 bytes of a row of m, R13 rows of m
//   R9 a, R11 rows left, R12 index, R10 the row of m
//   Y8 a[k] in all lanes
// Rows go in order. Products are rounded before they are added.

// ROW sets R10 to the row of m that index names, and Y8 to a[k].
#define ROW(outside) \
	MOVL         (R12), R10 \
	CMPQ         R10, R13   \
	JAE          outside    \
	IMULQ        R8, R10    \
	ADDQ         BX, R10    \
	VBROADCASTSS (R9), X8   \
	VCVTPS2PD    X8, Y8     \
	ADDQ         $4, R9     \
	ADDQ         $4, R12

// FROM readies a pass over the rows.
#define FROM \
	MOVQ a+16(FP), R9      \
	MOVQ rows+24(FP), R11  \
	MOVQ index+40(FP), R12

// func mulAddRowsAt64AVX2(dst *float64, n int, a *float32, rows int, m *float64, index *uint32, limit int) bool
//
// Neither n nor rows is 0. Blocks of 16 columns, one of 8, and the rest stay in registers for
// all rows.
TEXT ·mulAddRowsAt64AVX2(SB), NOSPLIT, $0-57
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ m+32(FP), BX
	MOVQ limit+48(FP), R13
	LEAQ (CX*8), R8

block16:
	CMPQ    CX, $16
	JLT     block8
	FROM
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3

row16:
	ROW(outside)
	VMULPD  (R10), Y8, Y4
	VMULPD  32(R10), Y8, Y5
	VMULPD  64(R10), Y8, Y6
	VMULPD  96(R10), Y8, Y7
	VADDPD  Y4, Y0, Y0
	VADDPD  Y5, Y1, Y1
	VADDPD  Y6, Y2, Y2
	VADDPD  Y7, Y3, Y3
	DECQ    R11
	JNZ     row16
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, DI
	ADDQ    $128, BX
	SUBQ    $16, CX
	JMP     block16

block8:
	CMPQ    CX, $8
	JLT     block4
	FROM
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1

row8:
	ROW(outside)
	VMULPD  (R10), Y8, Y4
	VMULPD  32(R10), Y8, Y5
	VADDPD  Y4, Y0, Y0
	VADDPD  Y5, Y1, Y1
	DECQ    R11
	JNZ     row8
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ    $64, DI
	ADDQ    $64, BX
	SUBQ    $8, CX

block4:
	CMPQ    CX, $5
	JEQ     block5
	CMPQ    CX, $4
	JLT     block2
	FROM
	VMOVUPD (DI), Y0

row4:
	ROW(outside)
	VMULPD  (R10), Y8, Y4
	VADDPD  Y4, Y0, Y0
	DECQ    R11
	JNZ     row4
	VMOVUPD Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, BX
	SUBQ    $4, CX

block2:
	CMPQ    CX, $2
	JLT     block1
	FROM
	VMOVUPD (DI), X0

row2:
	ROW(outside)
	VMULPD  (R10), X8, X4
	VADDPD  X4, X0, X0
	DECQ    R11
	JNZ     row2
	VMOVUPD X0, (DI)
	ADDQ    $16, DI
	ADDQ    $16, BX
	SUBQ    $2, CX

block1:
	CMPQ   CX, $1
	JLT    done
	FROM
	VMOVSD (DI), X0

row1:
	ROW(outside)
	VMULSD (R10), X8, X4
	VADDSD X4, X0, X0
	DECQ   R11
	JNZ    row1
	VMOVSD X0, (DI)
	JMP    done

block5:
	FROM
	VMOVUPD (DI), Y0
	VMOVSD  32(DI), X1

row5:
	ROW(outside)
	VMULPD  (R10), Y8, Y4
	VMULSD  32(R10), X8, X5
	VADDPD  Y4, Y0, Y0
	VADDSD  X5, X1, X1
	DECQ    R11
	JNZ     row5
	VMOVUPD Y0, (DI)
	VMOVSD  X1, 32(DI)

done:
	VZEROUPPER
	MOVB $1, ret+56(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+56(FP)
	RET

// func addOuterAt64AVX2(m *float64, n int, a *float32, rows int, x *float64, index *uint32, limit int) bool
//
// Neither n nor rows is 0. Tails of 2 columns and 1 are stored without masks, which some processors
// store slowly.
TEXT ·addOuterAt64AVX2(SB), NOSPLIT, $0-57
	MOVQ m+0(FP), BX
	MOVQ n+8(FP), CX
	MOVQ a+16(FP), R9
	MOVQ rows+24(FP), R11
	MOVQ x+32(FP), SI
	MOVQ index+40(FP), R12
	MOVQ limit+48(FP), R13
	LEAQ (CX*8), R8

row:
	ROW(outside)
	MOVQ SI, DX
	MOVQ CX, AX
	SUBQ $4, AX
	JLT  test2

loop4:
	VMULPD  (DX), Y8, Y0
	VADDPD  (R10), Y0, Y0
	VMOVUPD Y0, (R10)
	ADDQ    $32, DX
	ADDQ    $32, R10
	SUBQ    $4, AX
	JGE     loop4

test2:
	TESTQ   $2, CX
	JZ      test1
	VMULPD  (DX), X8, X0
	VADDPD  (R10), X0, X0
	VMOVUPD X0, (R10)
	ADDQ    $16, DX
	ADDQ    $16, R10

test1:
	TESTQ  $1, CX
	JZ     next
	VMULSD (DX), X8, X0
	VADDSD (R10), X0, X0
	VMOVSD X0, (R10)

next:
	DECQ R11
	JNZ  row
	VZEROUPPER
	MOVB $1, ret+56(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+56(FP)
	RET
