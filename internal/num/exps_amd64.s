//go:build !purego

#include "textflag.h"

// LANES is a constant in all lanes of a vector.
#define LANES(name, x) \
	DATA name<>+0(SB)/8, x   \
	DATA name<>+8(SB)/8, x   \
	DATA name<>+16(SB)/8, x  \
	DATA name<>+24(SB)/8, x  \
	GLOBL name<>(SB), RODATA|NOPTR, $32

// The constants of expParts.
LANES(invStep, $0x40571547652b82fe)
LANES(shift, $0x4338000000000000)
LANES(stepHi, $0x3f862e42fef80000)
LANES(stepLo, $0x3d51cf79abc9e3b4)
LANES(c6, $0x3f56c16c16c16c17)
LANES(c5, $0x3f81111111111111)
LANES(c4, $0x3fa5555555555555)
LANES(c3, $0x3fc5555555555555)
LANES(c2, $0x3fe0000000000000)
LANES(place, $1008)          // of exp2Pairs, in bytes
LANES(bias, $65472)          // 1023·64
LANES(size, $0x7fffffffffffffff)
LANES(limit, $0x4085e00000000000) // 700

// func expsAVX2(dst, x *float64, n int) int
//
// Exp of four values at a time, n a multiple of 4, up to the first four that are not all within
// ±700: the operations of expParts, each rounded, none fused. It returns how many are done.
TEXT ·expsAVX2(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    x+8(FP), SI
	MOVQ    n+16(FP), CX
	XORQ    BX, BX
	LEAQ    ·exp2Pairs(SB), R8
	VMOVUPD invStep<>(SB), Y15
	VMOVUPD shift<>(SB), Y14
	VMOVUPD stepHi<>(SB), Y13
	VMOVUPD stepLo<>(SB), Y12
	VMOVUPD c6<>(SB), Y11
	VMOVUPD c5<>(SB), Y10
	VMOVUPD c4<>(SB), Y9

loop:
	CMPQ      BX, CX
	JGE       done
	VMOVUPD   (SI)(BX*8), Y1
	VANDPD    size<>(SB), Y1, Y2
	VCMPPD    $18, limit<>(SB), Y2, Y2
	VMOVMSKPD Y2, AX
	CMPL      AX, $15
	JNE       done

	VMULPD Y15, Y1, Y2
	VADDPD Y14, Y2, Y2 // shifted
	VSUBPD Y14, Y2, Y3 // k
	VMULPD Y13, Y3, Y4
	VSUBPD Y4, Y1, Y1
	VMULPD Y12, Y3, Y4
	VSUBPD Y4, Y1, Y1  // r

	VPSLLQ       $4, Y2, Y5
	VPAND        place<>(SB), Y5, Y5
	VEXTRACTI128 $1, Y5, X6
	VMOVQ        X5, R9
	VPEXTRQ      $1, X5, R10
	VMOVQ        X6, R11
	VPEXTRQ      $1, X6, R12
	VMOVUPD      (R8)(R9*1), X5
	VMOVUPD      (R8)(R10*1), X6
	VINSERTF128  $1, (R8)(R11*1), Y5, Y5
	VINSERTF128  $1, (R8)(R12*1), Y6, Y6
	VUNPCKLPD    Y6, Y5, Y7 // hi
	VUNPCKHPD    Y6, Y5, Y8 // lo
	VPADDQ       bias<>(SB), Y2, Y2
	VPSRLQ       $6, Y2, Y2
	VPSLLQ       $52, Y2, Y2

	VMULPD  Y11, Y1, Y3
	VADDPD  Y10, Y3, Y3
	VMULPD  Y3, Y1, Y3
	VADDPD  Y9, Y3, Y3
	VMULPD  Y3, Y1, Y3
	VADDPD  c3<>(SB), Y3, Y3
	VMULPD  Y3, Y1, Y3
	VADDPD  c2<>(SB), Y3, Y3
	VMULPD  Y1, Y1, Y4
	VMULPD  Y3, Y4, Y4
	VADDPD  Y4, Y1, Y4 // p = r + r²(...)
	VMULPD  Y4, Y7, Y4
	VADDPD  Y4, Y8, Y4
	VADDPD  Y4, Y7, Y4 // y
	VMULPD  Y2, Y4, Y4
	VMOVUPD Y4, (DI)(BX*8)
	ADDQ    $4, BX
	JMP     loop

done:
	VZEROUPPER
	MOVQ BX, ret+24(FP)
	RET

// func canonical64AVX2(v *float64, n int)
//
// n is a multiple of 8. A sum with +0 is the value itself, and +0 of -0.
TEXT ·canonical64AVX2(SB), NOSPLIT, $0-16
	MOVQ   v+0(FP), DI
	MOVQ   n+8(FP), CX
	VXORPD Y0, Y0, Y0

block:
	VADDPD  (DI), Y0, Y1
	VADDPD  32(DI), Y0, Y2
	VMOVUPD Y1, (DI)
	VMOVUPD Y2, 32(DI)
	ADDQ    $64, DI
	SUBQ    $8, CX
	JG      block
	VZEROUPPER
	RET
