//go:build !purego

#include "textflag.h"

// Where the cuts of eight columns begin.
DATA lanes<>+0(SB)/8, $0x0000010000000000
DATA lanes<>+8(SB)/8, $0x0000030000000200
DATA lanes<>+16(SB)/8, $0x0000050000000400
DATA lanes<>+24(SB)/8, $0x0000070000000600
GLOBL lanes<>(SB), RODATA|NOPTR, $32

// STEP adds half of the cuts that are left, Y6, to the bins in Y3 where the cut there is not above the value.
#define STEP(at) \
	VMOVDQA    Y14, Y4               \
	VPGATHERDD Y4, at(BX)(Y3*4), Y5  \
	VPCMPGTD   Y1, Y5, Y5            \
	VPANDN     Y6, Y5, Y5            \
	VPADDD     Y5, Y3, Y3            \
	VPSRLD     $1, Y6, Y6

// func findAVX2(codes *uint8, values *float32, features, counts *int32, keys *[Most]int32, groups int)
TEXT ·findAVX2(SB), NOSPLIT, $0-48
	MOVQ     codes+0(FP), DI
	MOVQ     values+8(FP), SI
	MOVQ     features+16(FP), DX
	MOVQ     counts+24(FP), R8
	MOVQ     keys+32(FP), BX
	MOVQ     groups+40(FP), CX
	VPXOR    Y15, Y15, Y15
	VPCMPEQD Y14, Y14, Y14
	VPSRLD   $1, Y14, Y12
	VMOVDQU  lanes<>(SB), Y13

group:
	VMOVDQU    (DX), Y0
	VMOVDQA    Y14, Y2
	VGATHERDPS Y2, (SI)(Y0*4), Y1
	VADDPS     Y15, Y1, Y1
	VPSRAD     $31, Y1, Y2
	VPAND      Y12, Y2, Y2
	VPXOR      Y2, Y1, Y1
	VPSRLD     $31, Y14, Y6
	VPSLLD     $7, Y6, Y6
	VMOVDQA    Y13, Y3
	STEP(508)
	STEP(252)
	STEP(124)
	STEP(60)
	STEP(28)
	STEP(12)
	STEP(4)
	STEP(0)
	VPSUBD  Y13, Y3, Y3
	VPMINSD (R8), Y3, Y3
	VEXTRACTI128 $1, Y3, X4
	VPACKUSDW X4, X3, X3
	VPACKUSWB X3, X3, X3
	VMOVQ   X3, (DI)
	ADDQ    $8, DI
	ADDQ    $32, DX
	ADDQ    $32, R8
	ADDQ    $8192, BX
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET
