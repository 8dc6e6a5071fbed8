//go:build !purego

#include "textflag.h"

// ROW sets to to the labels of the row that the next index names.
#define ROW(at, to) \
	MOVL  at(DX), to; \
	IMULQ BX, to;     \
	ADDQ  SI, to

// func gatherAVX2(block, labels *float32, rows *uint32, width int)
TEXT ·gatherAVX2(SB), NOSPLIT, $0-32
	MOVQ block+0(FP), DI
	MOVQ labels+8(FP), SI
	MOVQ rows+16(FP), DX
	MOVQ width+24(FP), CX
	MOVQ CX, BX
	SHLQ $2, BX
	ROW(0, R8)
	ROW(4, R9)
	ROW(8, R10)
	ROW(12, R11)
	ROW(16, R12)
	ROW(20, R13)
	ROW(24, R14)
	ROW(28, R15)
	XORL AX, AX      // bytes into the rows
	SUBQ $4, CX
	JLT  rest

	// Four labels of eight rows: rows 0 to 3 in the low halves, 4 to 7 in the high.
four:
	VMOVUPS     (R8)(AX*1), X0
	VMOVUPS     (R9)(AX*1), X1
	VMOVUPS     (R10)(AX*1), X2
	VMOVUPS     (R11)(AX*1), X3
	VINSERTF128 $1, (R12)(AX*1), Y0, Y0
	VINSERTF128 $1, (R13)(AX*1), Y1, Y1
	VINSERTF128 $1, (R14)(AX*1), Y2, Y2
	VINSERTF128 $1, (R15)(AX*1), Y3, Y3
	VUNPCKLPS   Y1, Y0, Y4
	VUNPCKHPS   Y1, Y0, Y5
	VUNPCKLPS   Y3, Y2, Y6
	VUNPCKHPS   Y3, Y2, Y7
	VUNPCKLPD   Y6, Y4, Y0
	VUNPCKHPD   Y6, Y4, Y1
	VUNPCKLPD   Y7, Y5, Y2
	VUNPCKHPD   Y7, Y5, Y3
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	VMOVUPS     Y2, 64(DI)
	VMOVUPS     Y3, 96(DI)
	ADDQ        $128, DI
	ADDQ        $16, AX
	SUBQ        $4, CX
	JGE         four

rest:
	ADDQ $4, CX
	JZ   done

one:
	MOVL (R8)(AX*1), DX
	MOVL DX, (DI)
	MOVL (R9)(AX*1), DX
	MOVL DX, 4(DI)
	MOVL (R10)(AX*1), DX
	MOVL DX, 8(DI)
	MOVL (R11)(AX*1), DX
	MOVL DX, 12(DI)
	MOVL (R12)(AX*1), DX
	MOVL DX, 16(DI)
	MOVL (R13)(AX*1), DX
	MOVL DX, 20(DI)
	MOVL (R14)(AX*1), DX
	MOVL DX, 24(DI)
	MOVL (R15)(AX*1), DX
	MOVL DX, 28(DI)
	ADDQ $32, DI
	ADDQ $4, AX
	DECQ CX
	JNZ  one

done:
	VZEROUPPER
	RET

// func aboveThresholdAVX2(sets *uint8, blocks int, x *float32, normal *float64, width int, plane float64)
TEXT ·aboveThresholdAVX2(SB), NOSPLIT, $0-48
	MOVQ         sets+0(FP), DI
	MOVQ         blocks+8(FP), CX
	MOVQ         x+16(FP), SI
	MOVQ         normal+24(FP), DX
	MOVQ         width+32(FP), R8
	VBROADCASTSD plane+40(FP), Y7

block:
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	XORL   R9, R9

label:
	VBROADCASTSD (DX)(R9*8), Y2
	VCVTPS2PD    (SI), Y3
	VCVTPS2PD    16(SI), Y4
	VMULPD       Y2, Y3, Y3
	VMULPD       Y2, Y4, Y4
	VADDPD       Y3, Y0, Y0
	VADDPD       Y4, Y1, Y1
	ADDQ         $32, SI
	INCQ         R9
	CMPQ         R9, R8
	JLT          label

	VCMPPD    $0x1e, Y7, Y0, Y0 // above, and not NaN
	VCMPPD    $0x1e, Y7, Y1, Y1
	VMOVMSKPD Y0, AX
	VMOVMSKPD Y1, BX
	SHLL      $4, BX
	ORL       BX, AX
	MOVB      AX, (DI)
	INCQ      DI
	DECQ      CX
	JNZ       block
	VZEROUPPER
	RET

// func distancesAVX2(dst *float64, blocks int, x *float32, centre *float64, width int)
TEXT ·distancesAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ blocks+8(FP), CX
	MOVQ x+16(FP), SI
	MOVQ centre+24(FP), DX
	MOVQ width+32(FP), R8

block:
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	XORL   R9, R9

label:
	VBROADCASTSD (DX)(R9*8), Y2
	VCVTPS2PD    (SI), Y3
	VCVTPS2PD    16(SI), Y4
	VSUBPD       Y2, Y3, Y3
	VSUBPD       Y2, Y4, Y4
	VMULPD       Y3, Y3, Y3
	VMULPD       Y4, Y4, Y4
	VADDPD       Y3, Y0, Y0
	VADDPD       Y4, Y1, Y1
	ADDQ         $32, SI
	INCQ         R9
	CMPQ         R9, R8
	JLT          label

	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	ADDQ    $64, DI
	DECQ    CX
	JNZ     block
	VZEROUPPER
	RET

// func addRowsAVX2(dst *int64, width int, x *int64, index *uint32, n int)
TEXT ·addRowsAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ width+8(FP), BX
	MOVQ x+16(FP), SI
	MOVQ index+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ BX, R8
	SHLQ $3, BX           // bytes of a row
	LEAQ (DX)(CX*4), R9   // the end of index

	// Sixteen columns over all rows, then eight, then four.
	SUBQ $16, R8
	JLT  upto8

sixteen:
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	VMOVDQU 64(DI), Y2
	VMOVDQU 96(DI), Y3
	MOVQ    DX, R10

row16:
	MOVL   (R10), AX
	IMULQ  BX, AX
	VPADDQ (SI)(AX*1), Y0, Y0
	VPADDQ 32(SI)(AX*1), Y1, Y1
	VPADDQ 64(SI)(AX*1), Y2, Y2
	VPADDQ 96(SI)(AX*1), Y3, Y3
	ADDQ   $4, R10
	CMPQ   R10, R9
	JLT    row16

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	ADDQ    $128, DI
	ADDQ    $128, SI
	SUBQ    $16, R8
	JGE     sixteen

upto8:
	ADDQ $8, R8
	JLT  upto4
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	MOVQ    DX, R10

row8:
	MOVL   (R10), AX
	IMULQ  BX, AX
	VPADDQ (SI)(AX*1), Y0, Y0
	VPADDQ 32(SI)(AX*1), Y1, Y1
	ADDQ   $4, R10
	CMPQ   R10, R9
	JLT    row8

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ    $64, DI
	ADDQ    $64, SI
	SUBQ    $8, R8

upto4:
	ADDQ $4, R8
	JLT  done
	VMOVDQU (DI), Y0
	MOVQ    DX, R10

row4:
	MOVL   (R10), AX
	IMULQ  BX, AX
	VPADDQ (SI)(AX*1), Y0, Y0
	ADDQ   $4, R10
	CMPQ   R10, R9
	JLT    row4
	VMOVDQU Y0, (DI)

done:
	VZEROUPPER
	RET

DATA fixedOne<>+0(SB)/8, $0x4230000000000000 // 2^36
GLOBL fixedOne<>(SB), RODATA|NOPTR, $8
DATA half<>+0(SB)/8, $0x3fe0000000000000
GLOBL half<>(SB), RODATA|NOPTR, $8
DATA toInteger<>+0(SB)/8, $0x4330000000000000 // 2^52: a sum with it has an integer in its lower bits
GLOBL toInteger<>(SB), RODATA|NOPTR, $8
DATA laneNumbers<>+0(SB)/8, $0x0000000100000000
DATA laneNumbers<>+8(SB)/8, $0x0000000300000002
GLOBL laneNumbers<>(SB), RODATA|NOPTR, $16

// ADDFIXED adds to four sums the products of the weight in Y11 and the labels in Y1.
#define ADDFIXED \
	VMULPD   Y12, Y1, Y1;          \
	VADDPD   Y13, Y1, Y1;          \
	VROUNDPD $3, Y1, Y1;           \
	VMULPD   Y11, Y1, Y1;          \
	VADDPD   Y14, Y1, Y1;          \
	VPXOR    Y14, Y1, Y1;          \
	VPADDQ   (DI)(R11*8), Y1, Y1;  \
	VMOVDQU  Y1, (DI)(R11*8)

// func addLabelsAVX2(dst *int64, labels *float32, width int, weight, rows *uint32, n int)
TEXT ·addLabelsAVX2(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         labels+8(FP), SI
	MOVQ         width+16(FP), R8
	MOVQ         weight+24(FP), R9
	MOVQ         rows+32(FP), DX
	MOVQ         n+40(FP), CX
	VBROADCASTSD fixedOne<>(SB), Y12
	VBROADCASTSD half<>(SB), Y13
	VBROADCASTSD toInteger<>(SB), Y14
	MOVQ         R8, R12
	ANDQ         $3, R12              // labels after the last whole vector
	MOVQ         R8, R13
	SUBQ         R12, R13
	VMOVD        R12, X15
	VPBROADCASTD X15, X15
	VPCMPGTD     laneNumbers<>(SB), X15, X15

row:
	MOVL         (DX), AX
	VPBROADCASTD (R9)(AX*4), X0
	VCVTDQ2PD    X0, Y11
	IMULQ        R8, AX
	LEAQ         (SI)(AX*4), R10
	XORL         R11, R11
	CMPQ         R13, $0
	JEQ          rest

four:
	VCVTPS2PD (R10)(R11*4), Y1
	ADDFIXED
	ADDQ      $4, R11
	CMPQ      R11, R13
	JLT       four

rest:
	TESTQ      R12, R12
	JZ         next
	VMASKMOVPS (R10)(R11*4), X15, X1
	VCVTPS2PD  X1, Y1
	ADDFIXED

next:
	ADDQ $4, DX
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET
