//go:build !purego

#include "textflag.h"

// The constants of Log: its bounds, ln 2 in two parts, and 2/k for its terms.
DATA logOne<>+0(SB)/8, $0x3ff0000000000000
GLOBL logOne<>(SB), RODATA|NOPTR, $8
DATA logTwo<>+0(SB)/8, $0x4000000000000000
GLOBL logTwo<>(SB), RODATA|NOPTR, $8
DATA logHalf<>+0(SB)/8, $0x3fe0000000000000
GLOBL logHalf<>(SB), RODATA|NOPTR, $8
DATA logSqrt2<>+0(SB)/8, $0x3ff6a09e667f3bcd
GLOBL logSqrt2<>(SB), RODATA|NOPTR, $8
DATA logLeast<>+0(SB)/8, $0x0010000000000000
GLOBL logLeast<>(SB), RODATA|NOPTR, $8
DATA logMost<>+0(SB)/8, $0x7fefffffffffffff
GLOBL logMost<>(SB), RODATA|NOPTR, $8
DATA ln2Hi<>+0(SB)/8, $0x3fe62e42fef00000
GLOBL ln2Hi<>(SB), RODATA|NOPTR, $8
DATA ln2Lo<>+0(SB)/8, $0x3dd473de6af278ed
GLOBL ln2Lo<>(SB), RODATA|NOPTR, $8
DATA term3<>+0(SB)/8, $0x3fe5555555555555
GLOBL term3<>(SB), RODATA|NOPTR, $8
DATA term5<>+0(SB)/8, $0x3fd999999999999a
GLOBL term5<>(SB), RODATA|NOPTR, $8
DATA term7<>+0(SB)/8, $0x3fd2492492492492
GLOBL term7<>(SB), RODATA|NOPTR, $8
DATA term9<>+0(SB)/8, $0x3fcc71c71c71c71c
GLOBL term9<>(SB), RODATA|NOPTR, $8
DATA term11<>+0(SB)/8, $0x3fc745d1745d1746
GLOBL term11<>(SB), RODATA|NOPTR, $8
DATA term13<>+0(SB)/8, $0x3fc3b13b13b13b14
GLOBL term13<>(SB), RODATA|NOPTR, $8
DATA term15<>+0(SB)/8, $0x3fc1111111111111
GLOBL term15<>(SB), RODATA|NOPTR, $8
DATA term17<>+0(SB)/8, $0x3fbe1e1e1e1e1e1e
GLOBL term17<>(SB), RODATA|NOPTR, $8
DATA term19<>+0(SB)/8, $0x3fbaf286bca1af28
GLOBL term19<>(SB), RODATA|NOPTR, $8
DATA term21<>+0(SB)/8, $0x3fb8618618618618
GLOBL term21<>(SB), RODATA|NOPTR, $8
DATA logShift<>+0(SB)/8, $0x43300000000003ff
GLOBL logShift<>(SB), RODATA|NOPTR, $8
DATA logMantissa<>+0(SB)/8, $0x000fffffffffffff
GLOBL logMantissa<>(SB), RODATA|NOPTR, $8
DATA logInteger<>+0(SB)/8, $0x4330000000000000 // 2^52: its last bits count ones
GLOBL logInteger<>(SB), RODATA|NOPTR, $8

// func branchAVX2(left, right, p, s, t *float32, n int)
TEXT ·branchAVX2(SB), NOSPLIT, $0-48
	MOVQ left+0(FP), DI
	MOVQ right+8(FP), DX
	MOVQ p+16(FP), SI
	MOVQ s+24(FP), R8
	MOVQ t+32(FP), R9
	MOVQ n+40(FP), CX
	XORQ AX, AX
	CMPQ AX, CX
	JGE  done

loop:
	VMOVUPS (SI)(AX*4), Y0
	VMULPS  (R8)(AX*4), Y0, Y1
	VMULPS  (R9)(AX*4), Y0, Y2
	VMOVUPS Y1, (DI)(AX*4)
	VMOVUPS Y2, (DX)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	RET

// func joinAVX2(df, mass, left, right, s, t *float32, n int)
TEXT ·joinAVX2(SB), NOSPLIT, $0-56
	MOVQ df+0(FP), DI
	MOVQ mass+8(FP), DX
	MOVQ left+16(FP), SI
	MOVQ right+24(FP), BX
	MOVQ s+32(FP), R8
	MOVQ t+40(FP), R9
	MOVQ n+48(FP), CX
	XORQ AX, AX
	CMPQ AX, CX
	JGE  done

loop:
	VMOVUPS (SI)(AX*4), Y0
	VMOVUPS (BX)(AX*4), Y1
	VADDPS  Y1, Y0, Y2
	VMOVUPS Y2, (DX)(AX*4)
	VMULPS  (R8)(AX*4), Y1, Y1
	VMULPS  (R9)(AX*4), Y0, Y0
	VSUBPS  Y0, Y1, Y1
	VADDPS  (DI)(AX*4), Y1, Y1
	VMOVUPS Y1, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	RET

// func mul32AVX2(dst, a *float32, n int)
TEXT ·mul32AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX
	CMPQ AX, CX
	JGE  done

loop:
	VMOVUPS (SI)(AX*4), Y0
	VMULPS  (DI)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	RET

// func add64AVX2(dst, a *float64, n int)
TEXT ·add64AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX
	CMPQ AX, CX
	JGE  done

loop:
	VMOVUPD (DI)(AX*8), Y0
	VMOVUPD 32(DI)(AX*8), Y1
	VADDPD  (SI)(AX*8), Y0, Y0
	VADDPD  32(SI)(AX*8), Y1, Y1
	VMOVUPD Y0, (DI)(AX*8)
	VMOVUPD Y1, 32(DI)(AX*8)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	RET

// CONST puts a constant into all lanes.
#define CONST(name, y) VBROADCASTSD name<>(SB), y

// TERM sets y to 2/k + w·y, with w in Y6 and Y15 for the constant.
#define TERM(name, y) \
	VMULPD y, Y6, y          \
	VBROADCASTSD name<>(SB), Y15 \
	VADDPD Y15, y, y

// func ratiosAVX2(r *float32, sum *float64, d, below *float32, n int, weight, floor float32) int
//
// Four lanes of ratiosGo at a time, n a multiple of 4: the operations of Log, each
// rounded, none fused. Lanes where d is not above 0 take the logarithm of 1. A
// vector with a ratio that is 0, not normal or not finite is left to the caller.
TEXT ·ratiosAVX2(SB), NOSPLIT, $0-56
	MOVQ         r+0(FP), DI
	MOVQ         sum+8(FP), DX
	MOVQ         d+16(FP), SI
	MOVQ         below+24(FP), BX
	MOVQ         n+32(FP), CX
	VBROADCASTSS weight+40(FP), X14
	VBROADCASTSS floor+44(FP), X13
	CONST(logOne, Y12)
	CONST(logTwo, Y11)
	VXORPS       X10, X10, X10
	XORQ         AX, AX
	CMPQ         AX, CX
	JGE          done

loop:
	VMOVUPS   (BX)(AX*4), X0
	VMAXPS    X0, X13, X0      // g, a NaN too
	VMOVUPS   (SI)(AX*4), X1
	VMULPS    X14, X1, X2
	VDIVPS    X0, X2, X2       // r
	VCMPPS    $0x1e, X10, X1, X3 // d > 0
	VPMOVSXDQ X3, Y3
	VCVTPS2PD X0, Y0
	VCVTPS2PD X1, Y1
	VDIVPD    Y0, Y1, Y0       // x
	VBLENDVPD Y3, Y0, Y12, Y0
	VANDPD    Y3, Y1, Y1       // d, or 0

	CONST(logLeast, Y15)
	VCMPPD    $0x1d, Y15, Y0, Y4 // x >= least
	CONST(logMost, Y15)
	VCMPPD    $0x12, Y15, Y0, Y5 // x <= most
	VANDPD    Y5, Y4, Y4
	VMOVMSKPD Y4, R8
	CMPL      R8, $15
	JNE       done

	VPSRLQ    $52, Y0, Y7      // the exponent, biased
	CONST(logMantissa, Y15)
	VPAND     Y15, Y0, Y0
	VPOR      Y12, Y0, Y0      // m in [1, 2)
	CONST(logSqrt2, Y15)
	VCMPPD    $0x1e, Y15, Y0, Y4 // m > √2
	CONST(logHalf, Y9)
	VMULPD    Y9, Y0, Y5
	VBLENDVPD Y4, Y5, Y0, Y0   // m in [1/√2, √2]
	VPSUBQ    Y4, Y7, Y7
	CONST(logInteger, Y15)
	VPOR      Y15, Y7, Y7
	CONST(logShift, Y15)
	VSUBPD    Y15, Y7, Y7      // k
	VSUBPD    Y12, Y0, Y0      // f

	VADDPD Y11, Y0, Y4
	VDIVPD Y4, Y0, Y4 // s
	VMULPD Y4, Y4, Y5 // z
	VMULPD Y5, Y5, Y6 // w
	CONST(term19, Y8)
	TERM(term15, Y8)
	TERM(term11, Y8)
	TERM(term7, Y8)
	TERM(term3, Y8)   // odd
	VMULPD Y8, Y5, Y8
	CONST(term21, Y5)
	TERM(term17, Y5)
	TERM(term13, Y5)
	TERM(term9, Y5)
	TERM(term5, Y5)   // even
	VMULPD Y5, Y6, Y5
	VADDPD Y5, Y8, Y8 // R

	VMULPD Y9, Y0, Y5
	VMULPD Y0, Y5, Y5 // f²/2
	VADDPD Y8, Y5, Y8
	VMULPD Y8, Y4, Y8
	CONST(ln2Lo, Y15)
	VMULPD Y15, Y7, Y6
	VADDPD Y6, Y8, Y8
	VSUBPD Y8, Y5, Y8
	VSUBPD Y0, Y8, Y8
	CONST(ln2Hi, Y15)
	VMULPD Y15, Y7, Y6
	VSUBPD Y8, Y6, Y8 // ln x

	VMULPD  Y8, Y1, Y8
	VADDPD  (DX)(AX*8), Y8, Y8
	VMOVUPD Y8, (DX)(AX*8)
	VMOVUPS X2, (DI)(AX*4)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JLT     loop

done:
	VZEROUPPER
	MOVQ AX, ret+48(FP)
	RET
