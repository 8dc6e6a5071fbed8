//go:build !purego

#include "textflag.h"

// ROW adds the product of a value of a column of a and the 12 values of a row of b.
#define ROW(off, x, y, z) \
	VBROADCASTSD off(SI), Y15  \
	VFMADD231PD  Y12, Y15, x   \
	VFMADD231PD  Y13, Y15, y   \
	VFMADD231PD  Y14, Y15, z

#define LOAD(at, x, y, z) \
	VMOVUPD (at), x   \
	VMOVUPD 32(at), y \
	VMOVUPD 64(at), z

#define STORE(at, x, y, z) \
	VMOVUPD x, (at)   \
	VMOVUPD y, 32(at) \
	VMOVUPD z, 64(at)

// func addTileAVX2(c *float64, stride int, a, b *float64, depth int)
//   DI, R9, R10, R11 rows of c   SI a   DX b   CX columns of a that are left
//   Y0 to Y11 the tile   Y12 to Y14 a row of b   Y15 a value of a
TEXT ·addTileAVX2(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ depth+32(FP), CX
	LEAQ (DI)(R8*8), R9
	LEAQ (R9)(R8*8), R10
	LEAQ (R10)(R8*8), R11
	LOAD(DI, Y0, Y1, Y2)
	LOAD(R9, Y3, Y4, Y5)
	LOAD(R10, Y6, Y7, Y8)
	LOAD(R11, Y9, Y10, Y11)
	TESTQ CX, CX
	JZ    done

loop:
	LOAD(DX, Y12, Y13, Y14)
	ROW(0, Y0, Y1, Y2)
	ROW(8, Y3, Y4, Y5)
	ROW(16, Y6, Y7, Y8)
	ROW(24, Y9, Y10, Y11)
	ADDQ $32, SI
	ADDQ $96, DX
	DECQ CX
	JNZ  loop

done:
	STORE(DI, Y0, Y1, Y2)
	STORE(R9, Y3, Y4, Y5)
	STORE(R10, Y6, Y7, Y8)
	STORE(R11, Y9, Y10, Y11)
	VZEROUPPER
	RET
