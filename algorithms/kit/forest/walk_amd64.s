//go:build !purego

#include "textflag.h"

// One step of a walk that is at node N: SI are the nodes, CX the bits of an offset,
// VALUE the row's value of the feature in BX. A comparison that finds the value below
// leaves the carry, which takes one off.
#define VALUES(lane) lane(DI)(BX*8)
#define VALUE(lane) (DI)(BX*1)

#define STEP(N, value) \
	BZHIL CX, 4(SI)(N*8), DX; \
	SHRXL CX, 4(SI)(N*8), BX; \
	MOVL  value, BX;          \
	CMPL  BX, (SI)(N*8);      \
	SBBL  $-1, DX;            \
	ADDL  DX, N

// CHECK is STEP that tells by AX whether N is no leaf.
#define CHECK(N, value) \
	BZHIL CX, 4(SI)(N*8), DX; \
	SHRXL CX, 4(SI)(N*8), BX; \
	MOVL  value, BX;          \
	ORL   DX, AX;             \
	CMPL  BX, (SI)(N*8);      \
	SBBL  $-1, DX;            \
	ADDL  DX, N

// LEAF writes the number of the leaf N: its limit less leafLimit.
#define LEAF(N, at) \
	MOVL (SI)(N*8), BX;   \
	SUBL $0xff800002, BX; \
	MOVL BX, at(DX)

// func walkRowsBMI2(leaves *uint32, groups int, nodes *walkNode, x *uint32, groupBytes int, root, bits uint32, pairs int)
TEXT ·walkRowsBMI2(SB), NOSPLIT, $8-56
	MOVQ nodes+16(FP), SI
	MOVQ x+24(FP), DI
	MOVL bits+44(FP), CX

group:
	MOVQ pairs+48(FP), AX
	MOVQ AX, left-8(SP)
	MOVL root+40(FP), R8
	MOVL R8, R9
	MOVL R8, R10
	MOVL R8, R11
	MOVL R8, R12
	MOVL R8, R13
	MOVL R8, R14
	MOVL R8, R15

pair:
	XORL AX, AX
	CHECK(R8, VALUES(0))
	CHECK(R9, VALUES(4))
	CHECK(R10, VALUES(8))
	CHECK(R11, VALUES(12))
	CHECK(R12, VALUES(16))
	CHECK(R13, VALUES(20))
	CHECK(R14, VALUES(24))
	CHECK(R15, VALUES(28))
	TESTL AX, AX
	JZ    done
	STEP(R8, VALUES(0))
	STEP(R9, VALUES(4))
	STEP(R10, VALUES(8))
	STEP(R11, VALUES(12))
	STEP(R12, VALUES(16))
	STEP(R13, VALUES(20))
	STEP(R14, VALUES(24))
	STEP(R15, VALUES(28))
	DECQ  left-8(SP)
	JNZ   pair

done:
	MOVQ leaves+0(FP), DX
	LEAF(R8, 0)
	LEAF(R9, 4)
	LEAF(R10, 8)
	LEAF(R11, 12)
	LEAF(R12, 16)
	LEAF(R13, 20)
	LEAF(R14, 24)
	LEAF(R15, 28)
	ADDQ $32, DX
	MOVQ DX, leaves+0(FP)
	ADDQ groupBytes+32(FP), DI
	DECQ groups+8(FP)
	JNZ  group
	RET

// func walkTreesBMI2(roots *uint32, groups int, nodes *walkNode, x *uint32, bits uint32)
TEXT ·walkTreesBMI2(SB), NOSPLIT, $0-36
	MOVQ nodes+16(FP), SI
	MOVQ x+24(FP), DI
	MOVL bits+32(FP), CX

group:
	MOVQ roots+0(FP), DX
	MOVL (DX), R8
	MOVL 4(DX), R9
	MOVL 8(DX), R10
	MOVL 12(DX), R11
	MOVL 16(DX), R12
	MOVL 20(DX), R13
	MOVL 24(DX), R14
	MOVL 28(DX), R15

pair:
	XORL AX, AX
	CHECK(R8, VALUE(0))
	CHECK(R9, VALUE(0))
	CHECK(R10, VALUE(0))
	CHECK(R11, VALUE(0))
	CHECK(R12, VALUE(0))
	CHECK(R13, VALUE(0))
	CHECK(R14, VALUE(0))
	CHECK(R15, VALUE(0))
	TESTL AX, AX
	JZ    done
	STEP(R8, VALUE(0))
	STEP(R9, VALUE(0))
	STEP(R10, VALUE(0))
	STEP(R11, VALUE(0))
	STEP(R12, VALUE(0))
	STEP(R13, VALUE(0))
	STEP(R14, VALUE(0))
	STEP(R15, VALUE(0))
	JMP   pair

done:
	MOVQ roots+0(FP), DX
	LEAF(R8, 0)
	LEAF(R9, 4)
	LEAF(R10, 8)
	LEAF(R11, 12)
	LEAF(R12, 16)
	LEAF(R13, 20)
	LEAF(R14, 24)
	LEAF(R15, 28)
	ADDQ $32, DX
	MOVQ DX, roots+0(FP)
	DECQ groups+8(FP)
	JNZ  group
	RET

// func addLeavesAVX2(sums *float64, leaves *float32, reached *uint32, n, labels int)
TEXT ·addLeavesAVX2(SB), NOSPLIT, $0-40
	MOVQ sums+0(FP), DI
	MOVQ leaves+8(FP), SI
	MOVQ reached+16(FP), DX
	MOVQ n+24(FP), R8
	MOVQ labels+32(FP), R9
	LEAQ (DX)(R8*4), R8   // the end of reached

row:
	MOVL  (DX), AX
	IMULQ R9, AX
	LEAQ  (SI)(AX*4), AX
	MOVQ  R9, CX
	SUBQ  $4, CX
	JLT   rest

four:
	VCVTPS2PD (AX), Y0
	VADDPD    (DI), Y0, Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, AX
	ADDQ      $32, DI
	SUBQ      $4, CX
	JGE       four

rest:
	ADDQ $4, CX
	JZ   next

one:
	VXORPS    X1, X1, X1
	VCVTSS2SD (AX), X1, X1
	VADDSD    (DI), X1, X1
	VMOVSD    X1, (DI)
	ADDQ      $4, AX
	ADDQ      $8, DI
	DECQ      CX
	JNZ       one

next:
	ADDQ $4, DX
	CMPQ DX, R8
	JLT  row
	VZEROUPPER
	RET
