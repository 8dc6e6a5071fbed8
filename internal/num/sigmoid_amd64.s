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
DATA fifth<>+0(SB)/8, $16
GLOBL fifth<>(SB), RODATA|NOPTR, $8
DATA sixth<>+0(SB)/8, $32
GLOBL sixth<>(SB), RODATA|NOPTR, $8
DATA bias<>+0(SB)/8, $65472
GLOBL bias<>(SB), RODATA|NOPTR, $8

// EXP is a constant in all lanes of a vector, to be an operand from memory.
#define EXP(name, x) \
	DATA name<>+0(SB)/8, x   \
	DATA name<>+8(SB)/8, x   \
	DATA name<>+16(SB)/8, x  \
	DATA name<>+24(SB)/8, x  \
	GLOBL name<>(SB), RODATA|NOPTR, $32

EXP(expC6, $0x3f56c16c16c16c17)
EXP(expC5, $0x3f81111111111111)
EXP(expC4, $0x3fa5555555555555)
EXP(expC3, $0x3fc5555555555555)
EXP(expC2, $0x3fe0000000000000)
EXP(expPlace, $1008) // of exp2Pairs, in bytes
EXP(expBias, $65472)

// PAIR puts exp2Hi and exp2Lo of the entry whose place is in memory side by side.
#define PAIR(at, reg, x) \
	MOVQ    at(AX), reg     \
	VMOVUPD (R8)(reg*1), x

#define PAIRED(at, reg, y) \
	MOVQ        at(AX), reg            \
	VINSERTF128 $1, (R8)(reg*1), y, y

// func sigmoidPairsAVX2(s, t, f *float32, n int)
//
// SigmoidPair of n values, a multiple of 4: the operations of expParts and SigmoidPair,
// each rounded, none fused. Up to seven vectors of four go through three parts, one after
// the other, so that so many are under way at once. Between, 0(R15), aligned, has r, then e,
// of each, 224(R15) its place in the table, 448(R15) its power of two.
TEXT ·sigmoidPairsAVX2(SB), NOSPLIT, $704-32
	MOVQ  s+0(FP), DI
	MOVQ  t+8(FP), DX
	MOVQ  f+16(FP), SI
	MOVQ  n+24(FP), CX
	TESTQ CX, CX
	JLE   done
	LEAQ  ·exp2Pairs(SB), R8
	LEAQ  31(SP), R15
	ANDQ  $~31, R15

chunk:
	MOVQ    $28, R13
	CMPQ    CX, R13
	CMOVQLT CX, R13
	SUBQ    R13, CX
	SHLQ    $3, R13               // bytes of float64
	MOVQ    R15, AX
	LEAQ    (AX)(R13*1), R14
	MOVQ    SI, BX
	VBROADCASTSD invStep<>(SB), Y15
	VBROADCASTSD shift<>(SB), Y14
	VBROADCASTSD stepHi<>(SB), Y13
	VBROADCASTSD stepLo<>(SB), Y12
	VBROADCASTSD floor<>(SB), Y11
	VBROADCASTSD sign<>(SB), Y10
	VMOVUPD      expPlace<>(SB), Y9
	VMOVUPD      expBias<>(SB), Y8

reduce:
	VCVTPS2PD (BX), Y1
	VORPD     Y10, Y1, Y1 // -|f|
	VMAXPD    Y1, Y11, Y1 // NaN stays: the first operand is given back
	VMULPD    Y15, Y1, Y2
	VADDPD    Y14, Y2, Y2 // shifted
	VSUBPD    Y14, Y2, Y3 // k
	VMULPD    Y13, Y3, Y4
	VSUBPD    Y4, Y1, Y1
	VMULPD    Y12, Y3, Y4
	VSUBPD    Y4, Y1, Y1  // r
	VMOVUPD   Y1, (AX)
	VPSLLQ    $4, Y2, Y5
	VPAND     Y9, Y5, Y5
	VMOVDQU   Y5, 224(AX)
	VPADDQ    Y8, Y2, Y2
	VPSRLQ    $6, Y2, Y2
	VPSLLQ    $52, Y2, Y2
	VMOVDQU   Y2, 448(AX)
	ADDQ      $16, BX
	ADDQ      $32, AX
	CMPQ      AX, R14
	JLT       reduce

	MOVQ    R15, AX
	VMOVUPD expC6<>(SB), Y15
	VMOVUPD expC5<>(SB), Y14
	VMOVUPD expC4<>(SB), Y13
	VMOVUPD expC3<>(SB), Y12
	VMOVUPD expC2<>(SB), Y11

exponential:
	VMOVUPD   (AX), Y1
	VMULPD    Y15, Y1, Y3
	VADDPD    Y14, Y3, Y3
	VMULPD    Y3, Y1, Y3
	VADDPD    Y13, Y3, Y3
	VMULPD    Y3, Y1, Y3
	VADDPD    Y12, Y3, Y3
	VMULPD    Y3, Y1, Y3
	VADDPD    Y11, Y3, Y3
	VMULPD    Y1, Y1, Y4
	VMULPD    Y3, Y4, Y4
	VADDPD    Y4, Y1, Y4 // p = r + r²(...)
	PAIR(224, R9, X5)
	PAIR(232, R10, X6)
	PAIRED(240, R11, Y5)
	PAIRED(248, R12, Y6)
	VUNPCKLPD Y6, Y5, Y7 // hi
	VUNPCKHPD Y6, Y5, Y3 // lo
	VMULPD    Y4, Y7, Y4
	VADDPD    Y4, Y3, Y4
	VADDPD    Y4, Y7, Y4 // y
	VMULPD    448(AX), Y4, Y4
	VMOVUPD   Y4, (AX)   // e
	ADDQ      $32, AX
	CMPQ      AX, R14
	JLT       exponential

	MOVQ         R15, AX
	VBROADCASTSD one<>(SB), Y15

quotient:
	VMOVUPD    (AX), Y4
	VADDPD     Y15, Y4, Y5 // d = 1 + e
	VDIVPD     Y5, Y15, Y6
	VDIVPD     Y5, Y4, Y7 // e/d
	VMOVUPS    (SI), X0
	VCVTPD2PSY Y6, X6
	VCVTPD2PSY Y7, X7
	VBLENDVPS  X0, X7, X6, X2 // σ(f): the small side where f has its sign bit
	VBLENDVPS  X0, X6, X7, X3
	VMOVUPS    X2, (DI)
	VMOVUPS    X3, (DX)
	ADDQ       $16, SI
	ADDQ       $16, DI
	ADDQ       $16, DX
	ADDQ       $32, AX
	CMPQ       AX, R14
	JLT        quotient
	TESTQ      CX, CX
	JNZ        chunk

done:
	VZEROUPPER
	RET

// EXP2 sets x to what a table of exp2Hi or exp2Lo has at the places whose last six bits are Z2's: a to d are every other
// eight of the table, K1 tells the fifth bit and K2 the sixth.
#define EXP2(table, a, b, c, d, x, y, z) \
	VMOVAPD   Z2, x          \
	VMOVAPD   Z2, y          \
	VPERMI2PD 64(table), a, x  \
	VPERMI2PD 192(table), b, y \
	VBLENDMPD y, x, K1, x    \
	VMOVAPD   Z2, y          \
	VMOVAPD   Z2, z          \
	VPERMI2PD 320(table), c, y \
	VPERMI2PD 448(table), d, z \
	VBLENDMPD z, y, K1, y    \
	VBLENDMPD y, x, K2, x

// The three parts of eight lanes. REDUCE leaves r in Z1 and the shifted product in Z2, EXPONENTIAL takes them and leaves e in
// Z8, QUOTIENT takes that.
#define REDUCE \
	VCVTPS2PD (SI), Z1     \
	VORPD     Z10, Z1, Z1  \ // -|f|
	VMAXPD    Z1, Z11, Z1  \ // NaN stays: the first operand is given back
	VMULPD    Z15, Z1, Z2  \
	VADDPD    Z14, Z2, Z2  \ // shifted
	VSUBPD    Z14, Z2, Z3  \ // k
	VMULPD    Z13, Z3, Z4  \
	VSUBPD    Z4, Z1, Z1   \
	VMULPD    Z12, Z3, Z4  \
	VSUBPD    Z4, Z1, Z1   \ // r
	ADDQ      $32, SI

#define EXPONENTIAL \
	VMULPD   Z24, Z1, Z3 \
	VADDPD   Z25, Z3, Z3 \
	VMULPD   Z3, Z1, Z3  \
	VADDPD   Z26, Z3, Z3 \
	VMULPD   Z3, Z1, Z3  \
	VADDPD   Z27, Z3, Z3 \
	VMULPD   Z3, Z1, Z3  \
	VADDPD   Z28, Z3, Z3 \
	VMULPD   Z1, Z1, Z4  \
	VMULPD   Z3, Z4, Z4  \
	VADDPD   Z4, Z1, Z4  \ // p = r + r²(...)
	VPTESTMQ Z29, Z2, K1 \
	VPTESTMQ Z30, Z2, K2 \
	EXP2(R8, Z16, Z17, Z18, Z19, Z7, Z5, Z6) \ // hi
	EXP2(R9, Z20, Z21, Z22, Z23, Z3, Z5, Z6) \ // lo
	VMULPD   Z4, Z7, Z4  \
	VADDPD   Z4, Z3, Z4  \
	VADDPD   Z4, Z7, Z4  \ // y
	VPADDQ   Z31, Z2, Z2 \
	VPSRLQ   $6, Z2, Z2  \
	VPSLLQ   $52, Z2, Z2 \
	VMULPD   Z2, Z4, Z8

#define QUOTIENT \
	VMOVUPS   (BX), Y0   \
	VADDPD    Z9, Z8, Z5 \ // 1 + e
	VDIVPD    Z5, Z9, Z6 \
	VDIVPD    Z5, Z8, Z7 \
	VCVTPD2PS Z6, Y6     \
	VCVTPD2PS Z7, Y7     \
	VPMOVD2M  Y0, K3     \
	VBLENDMPS Y7, Y6, K3, Y5 \ // σ(f): the small side where f has its sign bit
	VBLENDMPS Y6, Y7, K3, Y3 \
	VMOVUPS   Y5, (DI)   \
	VMOVUPS   Y3, (DX)   \
	ADDQ      $32, BX    \
	ADDQ      $32, DI    \
	ADDQ      $32, DX

// func sigmoidPairsAVX512(s, t, f *float32, n int)
//
// is sigmoidPairsAVX2 of eight lanes, n a multiple of 8. Half of the tables are in registers, Z16 to Z23. Each of the three
// parts takes another vector, so that none waits for what is before it.
TEXT ·sigmoidPairsAVX512(SB), NOSPLIT, $0-32
	MOVQ    s+0(FP), DI
	MOVQ    t+8(FP), DX
	MOVQ    f+16(FP), SI
	MOVQ    n+24(FP), CX
	SHRQ    $3, CX
	JZ      done
	MOVQ    SI, BX
	LEAQ    ·exp2Hi(SB), R8
	LEAQ    ·exp2Lo(SB), R9
	VMOVUPD 0(R8), Z16
	VMOVUPD 128(R8), Z17
	VMOVUPD 256(R8), Z18
	VMOVUPD 384(R8), Z19
	VMOVUPD 0(R9), Z20
	VMOVUPD 128(R9), Z21
	VMOVUPD 256(R9), Z22
	VMOVUPD 384(R9), Z23

	VBROADCASTSD one<>(SB), Z9
	VBROADCASTSD sign<>(SB), Z10
	VBROADCASTSD floor<>(SB), Z11
	VBROADCASTSD stepLo<>(SB), Z12
	VBROADCASTSD stepHi<>(SB), Z13
	VBROADCASTSD shift<>(SB), Z14
	VBROADCASTSD invStep<>(SB), Z15
	VBROADCASTSD c6<>(SB), Z24
	VBROADCASTSD c5<>(SB), Z25
	VBROADCASTSD c4<>(SB), Z26
	VBROADCASTSD c3<>(SB), Z27
	VBROADCASTSD c2<>(SB), Z28
	VPBROADCASTQ fifth<>(SB), Z29
	VPBROADCASTQ sixth<>(SB), Z30
	VPBROADCASTQ bias<>(SB), Z31

	REDUCE
	DECQ CX
	JZ   last
	EXPONENTIAL
	REDUCE
	DECQ CX
	JZ   two

loop:
	QUOTIENT
	EXPONENTIAL
	REDUCE
	DECQ CX
	JNZ  loop

two:
	QUOTIENT

last:
	EXPONENTIAL
	QUOTIENT

done:
	VZEROUPPER
	RET
