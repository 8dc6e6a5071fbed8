//go:build !purego

#include "textflag.h"

// Registers of the kernels here:
//   SI spans, DX rows left, R11 entry, AX end of the row's entries
//   R9 a, R12 index, BX m, R8 bytes of a row of m, R13 rows of m, R10 bytes before the row of m
//   DI the row of dst or of x, CX columns left
//   Y8 a[k] in all lanes
// Rows and their entries go in order. Products are rounded before they are added.

// ENTRY sets R10 by the row of m that index names, and Y8 to a[k].
#define ENTRY(outside) \
	MOVL         (R12)(R11*4), R10 \
	CMPQ         R10, R13          \
	JAE          outside           \
	IMULQ        R8, R10           \
	VBROADCASTSS (R9)(R11*4), X8   \
	VCVTPS2PD    X8, Y8

// NEXT goes on to the next entry.
#define NEXT(loop) \
	INCQ R11     \
	CMPQ R11, AX \
	JLT  loop

// func addSparseProduct64AVX2(dst *float64, n int, spans *Span, rows int, a *float32, index *uint32, m *float64, limit int) bool
//
// Neither n nor rows is 0. Blocks of 16 columns, one of 8, and the rest stay in registers for
// all entries of a row.
TEXT ·addSparseProduct64AVX2(SB), NOSPLIT, $0-65
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), R8
	SHLQ $3, R8
	MOVQ spans+16(FP), SI
	MOVQ rows+24(FP), DX
	MOVQ a+32(FP), R9
	MOVQ index+40(FP), R12
	MOVQ limit+56(FP), R13

row:
	MOVL (SI), R11
	MOVL 4(SI), AX
	CMPQ R11, AX
	JGE  empty
	MOVQ n+8(FP), CX
	MOVQ m+48(FP), BX

block16:
	CMPQ    CX, $16
	JLT     block8
	MOVL    (SI), R11
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3

entry16:
	ENTRY(outside)
	VMULPD  (BX)(R10*1), Y8, Y4
	VMULPD  32(BX)(R10*1), Y8, Y5
	VMULPD  64(BX)(R10*1), Y8, Y6
	VMULPD  96(BX)(R10*1), Y8, Y7
	VADDPD  Y4, Y0, Y0
	VADDPD  Y5, Y1, Y1
	VADDPD  Y6, Y2, Y2
	VADDPD  Y7, Y3, Y3
	NEXT(entry16)
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
	MOVL    (SI), R11
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1

entry8:
	ENTRY(outside)
	VMULPD  (BX)(R10*1), Y8, Y4
	VMULPD  32(BX)(R10*1), Y8, Y5
	VADDPD  Y4, Y0, Y0
	VADDPD  Y5, Y1, Y1
	NEXT(entry8)
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
	MOVL    (SI), R11
	VMOVUPD (DI), Y0

entry4:
	ENTRY(outside)
	VMULPD  (BX)(R10*1), Y8, Y4
	VADDPD  Y4, Y0, Y0
	NEXT(entry4)
	VMOVUPD Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, BX
	SUBQ    $4, CX

block2:
	CMPQ    CX, $2
	JLT     block1
	MOVL    (SI), R11
	VMOVUPD (DI), X0

entry2:
	ENTRY(outside)
	VMULPD  (BX)(R10*1), X8, X4
	VADDPD  X4, X0, X0
	NEXT(entry2)
	VMOVUPD X0, (DI)
	ADDQ    $16, DI
	ADDQ    $16, BX
	SUBQ    $2, CX

block1:
	CMPQ   CX, $1
	JLT    next
	MOVL   (SI), R11
	VMOVSD (DI), X0

entry1:
	ENTRY(outside)
	VMULSD (BX)(R10*1), X8, X4
	VADDSD X4, X0, X0
	NEXT(entry1)
	VMOVSD X0, (DI)
	ADDQ   $8, DI
	JMP    next

block5:
	MOVL    (SI), R11
	VMOVUPD (DI), Y0
	VMOVSD  32(DI), X1

entry5:
	ENTRY(outside)
	VMULPD  (BX)(R10*1), Y8, Y4
	VMULSD  32(BX)(R10*1), X8, X5
	VADDPD  Y4, Y0, Y0
	VADDSD  X5, X1, X1
	NEXT(entry5)
	VMOVUPD Y0, (DI)
	VMOVSD  X1, 32(DI)
	ADDQ    $40, DI

next:
	ADDQ $8, SI
	DECQ DX
	JNZ  row
	VZEROUPPER
	MOVB $1, ret+64(FP)
	RET

empty:
	ADDQ R8, DI
	JMP  next

outside:
	VZEROUPPER
	MOVB $0, ret+64(FP)
	RET

// func addSparseProductT64AVX2(m *float64, n int, spans *Span, rows int, a *float32, index *uint32, x *float64, limit int) bool
//
// Neither n nor rows is 0. Rows of 5 columns stay in registers for all their entries. Tails of 2
// columns and 1 are stored without masks, which some processors store slowly.
TEXT ·addSparseProductT64AVX2(SB), NOSPLIT, $0-65
	MOVQ m+0(FP), BX
	MOVQ n+8(FP), R8
	SHLQ $3, R8
	MOVQ spans+16(FP), SI
	MOVQ rows+24(FP), DX
	MOVQ a+32(FP), R9
	MOVQ index+40(FP), R12
	MOVQ x+48(FP), DI
	MOVQ limit+56(FP), R13

row:
	MOVL (SI), R11
	MOVL 4(SI), AX
	CMPQ R11, AX
	JGE  next
	CMPQ R8, $40
	JEQ  five

entry:
	ENTRY(outside)
	ADDQ BX, R10
	XORQ CX, CX

	// CX is the bytes of the columns that are done.
	MOVQ R8, R15
	SUBQ $32, R15
	JLT  test2

loop4:
	VMULPD  (DI)(CX*1), Y8, Y0
	VADDPD  (R10)(CX*1), Y0, Y0
	VMOVUPD Y0, (R10)(CX*1)
	ADDQ    $32, CX
	CMPQ    CX, R15
	JLE     loop4

test2:
	TESTQ   $16, R8
	JZ      test1
	VMULPD  (DI)(CX*1), X8, X0
	VADDPD  (R10)(CX*1), X0, X0
	VMOVUPD X0, (R10)(CX*1)
	ADDQ    $16, CX

test1:
	TESTQ  $8, R8
	JZ     last
	VMULSD (DI)(CX*1), X8, X0
	VADDSD (R10)(CX*1), X0, X0
	VMOVSD X0, (R10)(CX*1)

last:
	NEXT(entry)

next:
	ADDQ R8, DI
	ADDQ $8, SI
	DECQ DX
	JNZ  row
	VZEROUPPER
	MOVB $1, ret+64(FP)
	RET

five:
	VMOVUPD (DI), Y1
	VMOVSD  32(DI), X2

entry5:
	ENTRY(outside)
	VMULPD  Y1, Y8, Y0
	VMULSD  X2, X8, X3
	VADDPD  (BX)(R10*1), Y0, Y0
	VADDSD  32(BX)(R10*1), X3, X3
	VMOVUPD Y0, (BX)(R10*1)
	VMOVSD  X3, 32(BX)(R10*1)
	NEXT(entry5)
	JMP     next

outside:
	VZEROUPPER
	MOVB $0, ret+64(FP)
	RET
