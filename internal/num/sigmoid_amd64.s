//go:build !purego

#include "textflag.h"

// The constants of expParts, and sigmoidFloor.
DATA invStep<>+0(SB)/8, $0x40571547652b82fe
GLOBL invStep<>(SB), RODATA|NOPTR, $8
DATA shift<>+0(SB)/8, $0x4338000000000000
GLOBL shift<>(SB), RODATA|NOPTR, $8
DATA stepHi<>+0(SB)/8, $0x3f862e42fef80000
GLOBL stepHi<>(SB), RODATA|NOPTR, $8
DATA stepLo<>+0(SB)/8, $0x3d51cf79abc9e3b4
GLOBL stepLo<>(SB), RODATA|NOPTR, $8
DATA c6<>+0(SB)/8, $0x3f56c16c16c16c17
GLOBL c6<>(SB), RODATA|NOPTR, $8
DATA c5<>+0(SB)/8, $0x3f81111111111111
GLOBL c5<>(SB), RODATA|NOPTR, $8
DATA c4<>+0(SB)/8, $0x3fa5555555555555
GLOBL c4<>(SB), RODATA|NOPTR, $8
DATA c3<>+0(SB)/8, $0x3fc5555555555555
GLOBL c3<>(SB), RODATA|NOPTR, $8
DATA c2<>+0(SB)/8, $0x3fe0000000000000
GLOBL c2<>(SB), RODATA|NOPTR, $8
DATA one<>+0(SB)/8, $0x3ff0000000000000
GLOBL one<>(SB), RODATA|NOPTR, $8
DATA floor<>+0(SB)/8, $0xc069000000000000
GLOBL floor<>(SB), RODATA|NOPTR, $8
DATA sign<>+0(SB)/8, $0x8000000000000000
GLOBL sign<>(SB), RODATA|NOPTR, $8
DATA index63<>+0(SB)/8, $63
GLOBL index63<>(SB), RODATA|NOPTR, $8
DATA bias<>+0(SB)/8, $65472
GLOBL bias<>(SB), RODATA|NOPTR, $8

// func sigmoidPairsAVX2(s, t, f *float32, n int)
//
// Four lanes of SigmoidPair at a time, n a multiple of 4: the operations of
// expParts and SigmoidPair, each rounded, none fused.
TEXT ·sigmoidPairsAVX2(SB), NOSPLIT, $0-32
	MOVQ  s+0(FP), DI
	MOVQ  t+8(FP), DX
	MOVQ  f+16(FP), SI
	MOVQ  n+24(FP), CX
	SUBQ  $4, CX
	JLT   done
	LEAQ  ·exp2Hi(SB), R8
	LEAQ  ·exp2Lo(SB), R9

	VBROADCASTSD invStep<>(SB), Y15
	VBROADCASTSD shift<>(SB), Y14
	VBROADCASTSD stepHi<>(SB), Y13
	VBROADCASTSD stepLo<>(SB), Y12
	VBROADCASTSD floor<>(SB), Y11
	VBROADCASTSD sign<>(SB), Y10
	VBROADCASTSD one<>(SB), Y9

loop:
	VMOVUPS   (SI), X0
	VCVTPS2PD X0, Y1
	VORPD     Y10, Y1, Y1 // -|f|
	VMAXPD    Y1, Y11, Y1 // NaN stays: the first operand is given back

	VMULPD Y15, Y1, Y2
	VADDPD Y14, Y2, Y2 // shifted
	VSUBPD Y14, Y2, Y3 // k
	VMULPD Y13, Y3, Y4
	VSUBPD Y4, Y1, Y1
	VMULPD Y12, Y3, Y4
	VSUBPD Y4, Y1, Y1  // r

	VBROADCASTSD c6<>(SB), Y5
	VMULPD       Y5, Y1, Y3
	VBROADCASTSD c5<>(SB), Y5
	VADDPD       Y5, Y3, Y3
	VMULPD       Y3, Y1, Y3
	VBROADCASTSD c4<>(SB), Y5
	VADDPD       Y5, Y3, Y3
	VMULPD       Y3, Y1, Y3
	VBROADCASTSD c3<>(SB), Y5
	VADDPD       Y5, Y3, Y3
	VMULPD       Y3, Y1, Y3
	VBROADCASTSD c2<>(SB), Y5
	VADDPD       Y5, Y3, Y3
	VMULPD       Y1, Y1, Y4
	VMULPD       Y3, Y4, Y4
	VADDPD       Y4, Y1, Y4 // p = r + r²(...)

	VPBROADCASTQ index63<>(SB), Y5
	VPAND        Y5, Y2, Y5
	VPCMPEQD     Y6, Y6, Y6
	VGATHERQPD   Y6, (R8)(Y5*8), Y7 // hi
	VPCMPEQD     Y6, Y6, Y6
	VGATHERQPD   Y6, (R9)(Y5*8), Y3 // lo
	VMULPD       Y4, Y7, Y4
	VADDPD       Y4, Y3, Y4
	VADDPD       Y4, Y7, Y4         // y

	VPBROADCASTQ bias<>(SB), Y5
	VPADDQ       Y5, Y2, Y2
	VPSRLQ       $6, Y2, Y2
	VPSLLQ       $52, Y2, Y2
	VMULPD       Y2, Y4, Y4 // e

	VADDPD     Y9, Y4, Y5 // 1 + e
	VDIVPD     Y5, Y9, Y6
	VDIVPD     Y5, Y4, Y7
	VCVTPD2PSY Y6, X6
	VCVTPD2PSY Y7, X7
	VBLENDVPS  X0, X7, X6, X2 // σ(f): the small side where f has its sign bit
	VBLENDVPS  X0, X6, X7, X3
	VMOVUPS    X2, (DI)
	VMOVUPS    X3, (DX)
	ADDQ       $16, SI
	ADDQ       $16, DI
	ADDQ       $16, DX
	SUBQ       $4, CX
	JGE        loop

done:
	VZEROUPPER
	RET

// func sigmoidPairsAVX512(s, t, f *float32, n int)
//
// is sigmoidPairsAVX2 of eight lanes, n a multiple of 8.
TEXT ·sigmoidPairsAVX512(SB), NOSPLIT, $0-32
	MOVQ  s+0(FP), DI
	MOVQ  t+8(FP), DX
	MOVQ  f+16(FP), SI
	MOVQ  n+24(FP), CX
	SUBQ  $8, CX
	JLT   done
	LEAQ  ·exp2Hi(SB), R8
	LEAQ  ·exp2Lo(SB), R9

	VBROADCASTSD invStep<>(SB), Z15
	VBROADCASTSD shift<>(SB), Z14
	VBROADCASTSD stepHi<>(SB), Z13
	VBROADCASTSD stepLo<>(SB), Z12
	VBROADCASTSD floor<>(SB), Z11
	VBROADCASTSD sign<>(SB), Z10
	VBROADCASTSD one<>(SB), Z9
	VBROADCASTSD c6<>(SB), Z16
	VBROADCASTSD c5<>(SB), Z17
	VBROADCASTSD c4<>(SB), Z18
	VBROADCASTSD c3<>(SB), Z19
	VBROADCASTSD c2<>(SB), Z20
	VPBROADCASTQ index63<>(SB), Z21
	VPBROADCASTQ bias<>(SB), Z22

loop:
	VMOVUPS   (SI), Y0
	VCVTPS2PD Y0, Z1
	VORPD     Z10, Z1, Z1 // -|f|
	VMAXPD    Z1, Z11, Z1 // NaN stays: the first operand is given back

	VMULPD Z15, Z1, Z2
	VADDPD Z14, Z2, Z2 // shifted
	VSUBPD Z14, Z2, Z3 // k
	VMULPD Z13, Z3, Z4
	VSUBPD Z4, Z1, Z1
	VMULPD Z12, Z3, Z4
	VSUBPD Z4, Z1, Z1  // r

	VMULPD Z16, Z1, Z3
	VADDPD Z17, Z3, Z3
	VMULPD Z3, Z1, Z3
	VADDPD Z18, Z3, Z3
	VMULPD Z3, Z1, Z3
	VADDPD Z19, Z3, Z3
	VMULPD Z3, Z1, Z3
	VADDPD Z20, Z3, Z3
	VMULPD Z1, Z1, Z4
	VMULPD Z3, Z4, Z4
	VADDPD Z4, Z1, Z4 // p = r + r²(...)

	VPANDQ     Z21, Z2, Z5
	KXNORB     K1, K1, K1
	VPXORQ     Z7, Z7, Z7
	VGATHERQPD (R8)(Z5*8), K1, Z7 // hi
	KXNORB     K1, K1, K1
	VPXORQ     Z3, Z3, Z3
	VGATHERQPD (R9)(Z5*8), K1, Z3 // lo
	VMULPD     Z4, Z7, Z4
	VADDPD     Z4, Z3, Z4
	VADDPD     Z4, Z7, Z4         // y

	VPADDQ Z22, Z2, Z2
	VPSRLQ $6, Z2, Z2
	VPSLLQ $52, Z2, Z2
	VMULPD Z2, Z4, Z4 // e

	VADDPD    Z9, Z4, Z5 // 1 + e
	VDIVPD    Z5, Z9, Z6
	VDIVPD    Z5, Z4, Z7
	VCVTPD2PS Z6, Y6
	VCVTPD2PS Z7, Y7
	VPMOVD2M  Y0, K2
	VBLENDMPS Y7, Y6, K2, Y2 // σ(f): the small side where f has its sign bit
	VBLENDMPS Y6, Y7, K2, Y3
	VMOVUPS   Y2, (DI)
	VMOVUPS   Y3, (DX)
	ADDQ      $32, SI
	ADDQ      $32, DI
	ADDQ      $32, DX
	SUBQ      $8, CX
	JGE       loop

done:
	VZEROUPPER
	RET
