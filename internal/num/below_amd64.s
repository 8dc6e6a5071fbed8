//go:build !purego

#include "textflag.h"

// func belowAVX2(dst *float32, at *uint32, v *float32, n int, limit float32, from uint32, order *uint64) int
//
// n is a multiple of 8. Of each eight values the ones that are not above the limit move to
// the front. order has eight bytes for each mask of them: the lane that each place takes.
TEXT ·belowAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst+0(FP), DI
	MOVQ         at+8(FP), SI
	MOVQ         v+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS limit+32(FP), Y15
	MOVL         from+36(FP), AX
	MOVQ         order+40(FP), BX
	VMOVD        AX, X14
	VPBROADCASTD X14, Y14
	VPMOVZXBD    lanes<>+0(SB), Y13
	VPADDD       Y13, Y14, Y14
	VPMOVZXBD    lanes<>+8(SB), Y13
	XORQ         R8, R8
	SHRQ         $3, CX
	JZ           done

eight:
	VMOVUPS   (DX), Y0
	VCMPPS    $2, Y15, Y0, Y1
	VMOVMSKPS Y1, R9
	VPMOVZXBD (BX)(R9*8), Y2
	POPCNTL   R9, R9
	VPERMPS   Y0, Y2, Y3
	VPERMD    Y14, Y2, Y4
	VMOVUPS   Y3, (DI)(R8*4)
	VMOVDQU   Y4, (SI)(R8*4)
	VPADDD    Y13, Y14, Y14
	ADDQ      R9, R8
	ADDQ      $32, DX
	DECQ      CX
	JNZ       eight

done:
	VZEROUPPER
	MOVQ R8, ret+48(FP)
	RET

DATA lanes<>+0(SB)/8, $0x0706050403020100
DATA lanes<>+8(SB)/8, $0x0808080808080808
GLOBL lanes<>(SB), RODATA|NOPTR, $16
