//go:build !purego

#include "textflag.h"

// QUAD is a constant in all lanes of a vector, to be an operand from memory.
#define QUAD(name, x) \
	DATA name<>+0(SB)/8, x   \
	DATA name<>+8(SB)/8, x   \
	DATA name<>+16(SB)/8, x  \
	DATA name<>+24(SB)/8, x  \
	GLOBL name<>(SB), RODATA|NOPTR, $32

// The constants of Log, as ratios_amd64.s has them.
QUAD(quadOne, $0x3ff0000000000000)
QUAD(quadTwo, $0x4000000000000000)
QUAD(quadHalf, $0x3fe0000000000000)
QUAD(quadSqrt2, $0x3ff6a09e667f3bcd)
QUAD(quadLn2Hi, $0x3fe62e42fef00000)
QUAD(quadLn2Lo, $0x3dd473de6af278ed)
QUAD(quadTerm3, $0x3fe5555555555555)
QUAD(quadTerm5, $0x3fd999999999999a)
QUAD(quadTerm7, $0x3fd2492492492492)
QUAD(quadTerm9, $0x3fcc71c71c71c71c)
QUAD(quadTerm11, $0x3fc745d1745d1746)
QUAD(quadTerm13, $0x3fc3b13b13b13b14)
QUAD(quadTerm15, $0x3fc1111111111111)
QUAD(quadTerm17, $0x3fbe1e1e1e1e1e1e)
QUAD(quadTerm19, $0x3fbaf286bca1af28)
QUAD(quadTerm21, $0x3fb8618618618618)
QUAD(quadShift, $0x43300000000003ff)
QUAD(quadMantissa, $0x000fffffffffffff)
QUAD(quadInteger, $0x4330000000000000) // 2^52: its last bits count ones
QUAD(quadLeast, $0x4330000000000001)   // the exponents of normal numbers, biased, and 2^52
QUAD(quadMost, $0x43300000000007fe)

// STEP sets y to term + w·y, with w in Y6.
#define STEP(term, y) \
	VMULPD y, Y6, y \
	VADDPD term, y, y

// func ratioRowsAVX2(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32, work *ratioWork) int
//
// Four columns of RatioRows at a time, of rows of n values: the operations of ratiosAVX2.
// It ends before a vector with a ratio that is 0, not normal or not finite, whose r may be
// written and whose sum is not. The quotient in float64, which Log takes, is d/g in float32
// when it is rounded once more: 53 bits are more than twice 24. Up to ratioTerms rows go
// through two parts, one after the other, so that many of them are under way at once.
// Between, work has d, f, s and k of each, where vectors are aligned: one that
// crosses a line of the cache is slow.
TEXT ·ratioRowsAVX2(SB), NOSPLIT, $0-80
	MOVQ r+0(FP), DI
	MOVQ d+16(FP), SI
	MOVQ below+24(FP), BX
	MOVQ n+40(FP), R8
	MOVQ work+64(FP), R15
	ADDQ $31, R15
	ANDQ $~31, R15
	SHLQ $2, R8
	XORQ AX, AX

block:
	MOVQ    rows+32(FP), R10
	LEAQ    (SI)(AX*4), R11
	LEAQ    (BX)(AX*4), R12
	LEAQ    (DI)(AX*4), R13
	VXORPD  Y11, Y11, Y11        // the sum
	VMOVUPD quadLeast<>(SB), Y14 // the least exponent
	VMOVAPD Y14, Y15             // the greatest

some:
	MOVQ    $32, CX
	CMPQ    R10, CX
	CMOVQLT R10, CX
	SUBQ    CX, R10
	MOVQ    CX, R9
	MOVQ    R15, DX
	VXORPD  Y10, Y10, Y10
	VMOVUPD quadOne<>(SB), Y12
	VMOVSS  floor+56(FP), X13
	VCVTSS2SD    X13, X13, X13
	VBROADCASTSD X13, Y13

quotient:
	VCVTPS2PD  (R12), Y0
	VMAXPD     Y0, Y13, Y0        // g, a NaN too
	VCVTPS2PD  (R11), Y1
	VDIVPD     Y0, Y1, Y0
	VCVTPD2PSY Y0, X2
	VMOVUPS    X2, (R13)          // r
	VCMPPD     $0x1e, Y10, Y1, Y3 // d > 0
	VBLENDVPD  Y3, Y0, Y12, Y0    // x, or 1
	VANDPD     Y3, Y1, Y1         // d, or 0
	VMOVUPD    Y1, (DX)
	VPSRLQ     $52, Y0, Y7        // the exponent, biased
	VPOR       quadInteger<>(SB), Y7, Y7
	VMINPD     Y7, Y14, Y14
	VMAXPD     Y7, Y15, Y15
	VANDPD     quadMantissa<>(SB), Y0, Y0
	VORPD      Y12, Y0, Y0        // m in [1, 2)
	VCMPPD     $0x1e, quadSqrt2<>(SB), Y0, Y4 // m > √2
	VPSUBQ     Y4, Y7, Y7
	VPSLLQ     $52, Y4, Y4
	VPADDQ     Y4, Y0, Y0         // m in [1/√2, √2]
	VSUBPD     quadShift<>(SB), Y7, Y7 // k
	VMOVUPD    Y7, 96(DX)
	VSUBPD     Y12, Y0, Y0        // f
	VMOVUPD    Y0, 32(DX)
	VADDPD     quadTwo<>(SB), Y0, Y4
	VDIVPD     Y4, Y0, Y4         // s
	VMOVUPD    Y4, 64(DX)
	ADDQ       R8, R11
	ADDQ       R8, R12
	ADDQ       R8, R13
	SUBQ       $-128, DX
	DECQ       R9
	JNZ        quotient

	MOVQ    R15, DX
	VMOVUPD quadTerm19<>(SB), Y13
	VMOVUPD quadTerm21<>(SB), Y12
	VMOVUPD quadTerm15<>(SB), Y10
	VMOVUPD quadTerm17<>(SB), Y9

logarithm:
	VMOVUPD 64(DX), Y4
	VMULPD  Y4, Y4, Y5  // z
	VMULPD  Y5, Y5, Y6  // w
	VMULPD  Y13, Y6, Y8
	VADDPD  Y10, Y8, Y8
	STEP(quadTerm11<>(SB), Y8)
	STEP(quadTerm7<>(SB), Y8)
	STEP(quadTerm3<>(SB), Y8) // odd
	VMULPD  Y8, Y5, Y8
	VMULPD  Y12, Y6, Y5
	VADDPD  Y9, Y5, Y5
	STEP(quadTerm13<>(SB), Y5)
	STEP(quadTerm9<>(SB), Y5)
	STEP(quadTerm5<>(SB), Y5) // even
	VMULPD  Y5, Y6, Y5
	VADDPD  Y5, Y8, Y8  // R
	VMOVUPD 32(DX), Y0
	VMULPD  quadHalf<>(SB), Y0, Y5
	VMULPD  Y0, Y5, Y5  // f²/2
	VADDPD  Y8, Y5, Y8
	VMULPD  Y8, Y4, Y8
	VMOVUPD 96(DX), Y7
	VMULPD  quadLn2Lo<>(SB), Y7, Y6
	VADDPD  Y6, Y8, Y8
	VSUBPD  Y8, Y5, Y8
	VSUBPD  Y0, Y8, Y8
	VMULPD  quadLn2Hi<>(SB), Y7, Y6
	VSUBPD  Y8, Y6, Y8  // ln x
	VMULPD  (DX), Y8, Y8
	VADDPD  Y8, Y11, Y11
	SUBQ    $-128, DX
	DECQ    CX
	JNZ     logarithm
	TESTQ   R10, R10
	JNZ     some

	VCMPPD    $1, quadLeast<>(SB), Y14, Y14 // below the least
	VCMPPD    $0x1e, quadMost<>(SB), Y15, Y15
	VORPD     Y14, Y15, Y15
	VMOVMSKPD Y15, R10
	TESTL     R10, R10
	JNZ       done
	MOVQ      sum+8(FP), DX
	VADDPD    (DX)(AX*8), Y11, Y11
	VMOVUPD   Y11, (DX)(AX*8)
	ADDQ      $4, AX
	CMPQ      AX, columns+48(FP)
	JLT       block

done:
	VZEROUPPER
	MOVQ AX, ret+72(FP)
	RET
