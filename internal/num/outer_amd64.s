//go:build !purego

#include "textflag.h"

// Registers of the kernels here:
//   DI m, CX n, SI a, DX rows left, BX x, R8 bytes of a row of m
//   R10 the row of m, R11 x and R9 columns left within it
//   R12 index, R13 rows of m
//   Y8 a[k] in all lanes
// Rows go in order; tails of 4, 2 and 1 columns are stored without masks, which
// some processors store slowly.

#define STEP(off, y) \
	VMOVUPS     (off)(R10), y     \
	VFMADD231PS (off)(R11), Y8, y \
	VMOVUPS     y, (off)(R10)

// ADDROW adds a[k]·x to the row at R10, in float32.
#define ADDROW(loop32, test8, loop8, test4, test2, test1, next) \
	VBROADCASTSS (SI), Y8      \
	MOVQ         BX, R11       \
	MOVQ         CX, R9        \
	SUBQ         $32, R9       \
	JLT          test8         \
loop32: \
	STEP(0, Y0)                \
	STEP(32, Y1)               \
	STEP(64, Y2)               \
	STEP(96, Y3)               \
	ADDQ         $128, R10     \
	ADDQ         $128, R11     \
	SUBQ         $32, R9       \
	JGE          loop32        \
test8: \
	ADDQ         $24, R9       \
	JLT          test4         \
loop8: \
	STEP(0, Y0)                \
	ADDQ         $32, R10      \
	ADDQ         $32, R11      \
	SUBQ         $8, R9        \
	JGE          loop8         \
test4: \
	TESTQ        $4, CX        \
	JZ           test2         \
	VMOVUPS      (R10), X0     \
	VFMADD231PS  (R11), X8, X0 \
	VMOVUPS      X0, (R10)     \
	ADDQ         $16, R10      \
	ADDQ         $16, R11      \
test2: \
	TESTQ        $2, CX        \
	JZ           test1         \
	VMOVSD       (R10), X0     \
	VMOVSD       (R11), X1     \
	VFMADD231PS  X1, X8, X0    \
	VMOVSD       X0, (R10)     \
	ADDQ         $8, R10       \
	ADDQ         $8, R11       \
test1: \
	TESTQ        $1, CX        \
	JZ           next          \
	VMOVSS       (R10), X0     \
	VFMADD231SS  (R11), X8, X0 \
	VMOVSS       X0, (R10)

// func addOuterAVX2(m *float32, n int, a *float32, rows int, x *float32)
TEXT ·addOuterAVX2(SB), NOSPLIT, $0-40
	MOVQ  m+0(FP), DI
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  rows+24(FP), DX
	MOVQ  x+32(FP), BX
	LEAQ  (CX*4), R8
	TESTQ DX, DX
	JZ    done

row:
	MOVQ DI, R10
	ADDROW(loop32, test8, loop8, test4, test2, test1, next)

next:
	ADDQ $4, SI
	ADDQ R8, DI
	DECQ DX
	JNZ  row

done:
	VZEROUPPER
	RET

// func addOuterAtAVX2(m *float32, n int, a *float32, rows int, x *float32, index *uint32, limit int) bool
TEXT ·addOuterAtAVX2(SB), NOSPLIT, $0-57
	MOVQ  m+0(FP), DI
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  rows+24(FP), DX
	MOVQ  x+32(FP), BX
	MOVQ  index+40(FP), R12
	MOVQ  limit+48(FP), R13
	LEAQ  (CX*4), R8
	TESTQ DX, DX
	JZ    done

row:
	MOVL  (R12), R10
	CMPQ  R10, R13
	JAE   outside
	IMULQ R8, R10
	ADDQ  DI, R10
	ADDROW(loop32, test8, loop8, test4, test2, test1, next)

next:
	ADDQ $4, SI
	ADDQ $4, R12
	DECQ DX
	JNZ  row

done:
	VZEROUPPER
	MOVB $1, ret+56(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+56(FP)
	RET

#define STEP64(off, off64, y) \
	VCVTPS2PD   (off)(R11), y       \
	VFMADD213PD (off64)(R10), Y8, y \
	VMOVUPD     y, (off64)(R10)

// func addOuter64AVX2(m *float64, n int, a *float32, rows int, x *float32)
TEXT ·addOuter64AVX2(SB), NOSPLIT, $0-40
	MOVQ  m+0(FP), R10
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  rows+24(FP), DX
	MOVQ  x+32(FP), BX
	TESTQ DX, DX
	JZ    done

row:
	VMOVSS       (SI), X8
	VCVTSS2SD    X8, X8, X8
	VBROADCASTSD X8, Y8
	MOVQ         BX, R11
	MOVQ         CX, R9
	SUBQ         $16, R9
	JLT          test4

loop16:
	STEP64(0, 0, Y0)
	STEP64(16, 32, Y1)
	STEP64(32, 64, Y2)
	STEP64(48, 96, Y3)
	ADDQ $128, R10
	ADDQ $64, R11
	SUBQ $16, R9
	JGE  loop16

test4:
	ADDQ $12, R9
	JLT  test2

loop4:
	STEP64(0, 0, Y0)
	ADDQ $32, R10
	ADDQ $16, R11
	SUBQ $4, R9
	JGE  loop4

test2:
	TESTQ       $2, CX
	JZ          test1
	VCVTPS2PD   (R11), X0
	VFMADD213PD (R10), X8, X0
	VMOVUPD     X0, (R10)
	ADDQ        $16, R10
	ADDQ        $8, R11

test1:
	TESTQ       $1, CX
	JZ          next
	VMOVSS      (R11), X0
	VCVTSS2SD   X0, X0, X0
	VFMADD213SD (R10), X8, X0
	VMOVSD      X0, (R10)
	ADDQ        $8, R10

next:
	ADDQ $4, SI
	DECQ DX
	JNZ  row

done:
	VZEROUPPER
	RET
