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

// CONST8 puts a constant into all lanes.
#define CONST8(name, z) VBROADCASTSD name<>(SB), z

// TERM8 sets z to term + w·z, with w in Z6.
#define TERM8(term, z) \
	VMULPD z, Z6, z    \
	VADDPD term, z, z

// QUOTIENT8 leaves f in Z0, s in Z4, k in Z7 and d, or 0, in Z1 of a row's eight columns. The quotient in float64, which Log
// takes, is r when it is rounded once more: 53 bits are more than twice 24.
#define QUOTIENT8 \
	VCVTPS2PD  (R12), Z0          \
	VMAXPD     Z0, Z13, Z0        \ // g, a NaN too
	VCVTPS2PD  (R11), Z1          \
	VDIVPD     Z0, Z1, Z0         \
	VCVTPD2PS  Z0, Y2             \
	VMOVUPS    Y2, (R13)          \ // r
	VCMPPD     $0x1e, Z10, Z1, K1 \ // d > 0
	VBLENDMPD  Z0, Z12, K1, Z0    \ // x, or 1
	VMOVAPD.Z  Z1, K1, Z1         \ // d, or 0
	VCMPPD     $0x1d, Z16, Z0, K3, K3 \ // x >= least
	VCMPPD     $0x12, Z17, Z0, K3, K3 \ // x <= most
	VGETEXPPD  Z0, Z7             \ // k
	VGETMANTPD $0, Z0, Z0         \ // m in [1, 2)
	VCMPPD     $0x1e, Z15, Z0, K2 \ // m > √2
	VMULPD     Z14, Z0, K2, Z0    \ // m in [1/√2, √2]
	VADDPD     Z12, Z7, K2, Z7    \
	VSUBPD     Z12, Z0, Z0        \ // f
	VADDPD     Z11, Z0, Z4        \
	VDIVPD     Z4, Z0, Z4         \ // s
	ADDQ       R8, R11            \
	ADDQ       R8, R12            \
	ADDQ       R8, R13

// LOGARITHM8 adds d ln x to Z20.
#define LOGARITHM8 \
	VMULPD  Z4, Z4, Z5 \ // z
	VMULPD  Z5, Z5, Z6 \ // w
	VMOVAPD Z29, Z8    \
	TERM8(Z27, Z8)     \
	TERM8(Z25, Z8)     \
	TERM8(Z23, Z8)     \
	TERM8(Z21, Z8)     \ // odd
	VMULPD  Z8, Z5, Z8 \
	VMOVAPD Z30, Z5    \
	TERM8(Z28, Z5)     \
	TERM8(Z26, Z5)     \
	TERM8(Z24, Z5)     \
	TERM8(Z22, Z5)     \ // even
	VMULPD  Z5, Z6, Z5 \
	VADDPD  Z5, Z8, Z8 \ // R
	VMULPD  Z14, Z0, Z5 \
	VMULPD  Z0, Z5, Z5 \ // f²/2
	VADDPD  Z8, Z5, Z8 \
	VMULPD  Z8, Z4, Z8 \
	VMULPD  Z19, Z7, Z6 \
	VADDPD  Z6, Z8, Z8 \
	VSUBPD  Z8, Z5, Z8 \
	VSUBPD  Z0, Z8, Z8 \
	VMULPD  Z18, Z7, Z6 \
	VSUBPD  Z8, Z6, Z8 \ // ln x
	VMULPD  Z8, Z1, Z8 \
	VADDPD  Z8, Z20, Z20

// func ratioRowsAVX512(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32) int
//
// Eight columns of RatioRows at a time, of rows of n values: the operations of ratiosAVX2.
// It ends before a vector with a ratio that is 0, not normal or not finite, whose r may
// be written and whose sum is not. While a row's logarithm is computed, the next one's quotient is under way.
TEXT ·ratioRowsAVX512(SB), NOSPLIT, $0-72
	MOVQ         r+0(FP), DI
	MOVQ         sum+8(FP), DX
	MOVQ         d+16(FP), SI
	MOVQ         below+24(FP), BX
	MOVQ         n+40(FP), R8
	MOVQ         columns+48(FP), R9
	VMOVSS       floor+56(FP), X13
	VCVTSS2SD    X13, X13, X13
	VBROADCASTSD X13, Z13
	SHLQ         $2, R8
	XORQ         AX, AX
	VPXORQ       Z10, Z10, Z10
	CONST8(logTwo, Z11)
	CONST8(logOne, Z12)
	CONST8(logHalf, Z14)
	CONST8(logSqrt2, Z15)
	CONST8(logLeast, Z16)
	CONST8(logMost, Z17)
	CONST8(ln2Hi, Z18)
	CONST8(ln2Lo, Z19)
	CONST8(term3, Z21)
	CONST8(term5, Z22)
	CONST8(term7, Z23)
	CONST8(term9, Z24)
	CONST8(term11, Z25)
	CONST8(term13, Z26)
	CONST8(term15, Z27)
	CONST8(term17, Z28)
	CONST8(term19, Z29)
	CONST8(term21, Z30)

block:
	MOVQ   rows+32(FP), R10
	LEAQ   (SI)(AX*4), R11
	LEAQ   (BX)(AX*4), R12
	LEAQ   (DI)(AX*4), R13
	VPXORQ Z20, Z20, Z20
	KXNORB K3, K3, K3

	QUOTIENT8
	DECQ R10
	JZ   last

row:
	LOGARITHM8
	QUOTIENT8
	DECQ R10
	JNZ  row

last:
	LOGARITHM8
	KMOVB   K3, R10
	CMPB    R10, $-1
	JNE     done
	VADDPD  (DX)(AX*8), Z20, Z20
	VMOVUPD Z20, (DX)(AX*8)
	ADDQ    $8, AX
	CMPQ    AX, R9
	JLT     block

done:
	VZEROUPPER
	MOVQ AX, ret+64(FP)
	RET
