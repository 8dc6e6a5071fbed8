//go:build !purego

#include "textflag.h"

// func keepPositiveAVX2(dst, v, by *float32, n int)
// Y2 has all bits set where by is above 0, which is false of what is no number.
TEXT ·keepPositiveAVX2(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   v+8(FP), SI
	MOVQ   by+16(FP), DX
	MOVQ   n+24(FP), CX
	XORQ   AX, AX
	VXORPS Y0, Y0, Y0
	CMPQ   AX, CX
	JGE    done

loop:
	VMOVUPS (DX)(AX*4), Y1
	VCMPPS  $0x1E, Y0, Y1, Y2
	VANDPS  (SI)(AX*4), Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	RET
