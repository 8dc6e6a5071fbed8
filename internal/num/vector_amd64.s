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

#define CANONICAL(at, y) \
	VMOVUPS at(DI), y        \
	VCMPPS  $0, Y15, y, Y14  \
	VANDNPS y, Y14, y        \
	VMOVUPS y, at(DI)

// func add32AVX2(dst, a *float32, n int)
TEXT ·add32AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	EACH(ADD)

// func scale32AVX2(v *float32, n int, a float32)
TEXT ·scale32AVX2(SB), NOSPLIT, $0-20
	MOVQ         v+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS a+16(FP), Y15
	EACH(SCALE)

// func canonical32AVX2(v *float32, n int)
TEXT ·canonical32AVX2(SB), NOSPLIT, $0-16
	MOVQ   v+0(FP), DI
	MOVQ   n+8(FP), CX
	VXORPS Y15, Y15, Y15
	EACH(CANONICAL)

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
