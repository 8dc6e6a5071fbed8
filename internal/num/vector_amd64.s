//go:build !purego

#include "textflag.h"

// All take n, a multiple of 8 and not 0: 32 at a time, then 8.

// EACH runs the body, of one vector, over R8 to R8 + 4·CX.
#define EACH(body) \
	SUBQ $32, CX   \
	JLT  rest      \
four: \
	body(0, Y0)    \
	body(32, Y1)   \
	body(64, Y2)   \
	body(96, Y3)   \
	ADDQ $128, DI  \
	ADDQ $128, SI  \
	SUBQ $32, CX   \
	JGE  four      \
rest: \
	ADDQ $32, CX   \
	JZ   done      \
one: \
	body(0, Y0)    \
	ADDQ $32, DI   \
	ADDQ $32, SI   \
	SUBQ $8, CX    \
	JNZ  one       \
done: \
	VZEROUPPER     \
	RET

#define ADD(at, y) \
	VMOVUPS at(DI), y    \
	VADDPS  at(SI), y, y \
	VMOVUPS y, at(DI)

#define SCALE(at, y) \
	VMULPS  at(DI), Y15, y \
	VMOVUPS y, at(DI)

// func add32AVX2(dst, a *float32, n int)
TEXT ·add32AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	EACH(ADD)

#define ADDWHOLE(at, y) \
	VMOVDQU at(DI), y    \
	VPADDD  at(SI), y, y \
	VMOVDQU y, at(DI)

// func addInt32AVX2(dst, a *int32, n int)
TEXT ·addInt32AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	EACH(ADDWHOLE)

// func scale32AVX2(v *float32, n int, a float32)
TEXT ·scale32AVX2(SB), NOSPLIT, $0-20
	MOVQ         v+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS a+16(FP), Y15
	EACH(SCALE)

// CANONICAL puts +0 in the place of -0: Y15 is -0. LOOK makes y tell which are -0. Both gather in Y14 which are an infinity or a
// NaN: Y13 is the exponent of these.
#define CANONICAL(at, y) \
	VMOVDQU  at(DI), y     \
	VPAND    y, Y13, Y8    \
	VPCMPEQD Y8, Y13, Y8   \
	VPOR     Y8, Y14, Y14  \
	VPCMPEQD y, Y15, Y8    \
	VPANDN   y, Y8, y      \
	VMOVDQU  y, at(DI)

#define LOOK(at, y) \
	VMOVDQU  at(DI), y     \
	VPAND    y, Y13, Y8    \
	VPCMPEQD Y8, Y13, Y8   \
	VPCMPEQD y, Y15, y     \
	VPOR     Y8, Y14, Y14

// func canonical32AVX2(v *float32, n int) (finite bool)
//
// Blocks without -0 are only read.
TEXT ·canonical32AVX2(SB), NOSPLIT, $0-17
	MOVQ     v+0(FP), DI
	MOVQ     n+8(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD   $24, Y15, Y13
	VPSLLD   $23, Y13, Y13
	VPSLLD   $31, Y15, Y15
	VPXOR    Y14, Y14, Y14
	SUBQ     $64, CX
	JLT      rest

block:
	LOOK(0, Y0)
	LOOK(32, Y1)
	LOOK(64, Y2)
	LOOK(96, Y3)
	LOOK(128, Y4)
	LOOK(160, Y5)
	LOOK(192, Y6)
	LOOK(224, Y7)
	VPOR   Y1, Y0, Y0
	VPOR   Y3, Y2, Y2
	VPOR   Y5, Y4, Y4
	VPOR   Y7, Y6, Y6
	VPOR   Y2, Y0, Y0
	VPOR   Y6, Y4, Y4
	VPOR   Y4, Y0, Y0
	VPTEST Y0, Y0
	JNZ    some

next:
	ADDQ $256, DI
	SUBQ $64, CX
	JGE  block

rest:
	ADDQ $64, CX
	JZ   done

one:
	CANONICAL(0, Y0)
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  one

done:
	VPTEST Y14, Y14
	SETEQ  finite+16(FP)
	VZEROUPPER
	RET

some:
	CANONICAL(0, Y0)
	CANONICAL(32, Y1)
	CANONICAL(64, Y2)
	CANONICAL(96, Y3)
	CANONICAL(128, Y4)
	CANONICAL(160, Y5)
	CANONICAL(192, Y6)
	CANONICAL(224, Y7)
	JMP next

// func standardiseAVX2(dst, x *float32, shift, scale *float64, n int)
TEXT ·standardiseAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ shift+16(FP), R8
	MOVQ scale+24(FP), R9
	MOVQ n+32(FP), CX
	XORQ AX, AX

loop:
	VCVTPS2PD  (SI)(AX*4), Y0
	VCVTPS2PD  16(SI)(AX*4), Y1
	VSUBPD     (R8)(AX*8), Y0, Y0
	VSUBPD     32(R8)(AX*8), Y1, Y1
	VMULPD     (R9)(AX*8), Y0, Y0
	VMULPD     32(R9)(AX*8), Y1, Y1
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VMOVUPS    X0, (DI)(AX*4)
	VMOVUPS    X1, 16(DI)(AX*4)
	ADDQ       $8, AX
	CMPQ       AX, CX
	JLT        loop
	VZEROUPPER
	RET
