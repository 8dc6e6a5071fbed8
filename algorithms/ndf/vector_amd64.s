//go:build !purego

#include "textflag.h"

// ALL is a constant of tanh32 in all lanes of a vector.
#define ALL(name, x) \
	DATA name<>+0(SB)/4, x  \
	DATA name<>+4(SB)/4, x  \
	DATA name<>+8(SB)/4, x  \
	DATA name<>+12(SB)/4, x \
	DATA name<>+16(SB)/4, x \
	DATA name<>+20(SB)/4, x \
	DATA name<>+24(SB)/4, x \
	DATA name<>+28(SB)/4, x \
	GLOBL name<>(SB), RODATA|NOPTR, $32

ALL(most, $0x41400000)
ALL(log2e, $0xc038aa3b)
ALL(shift, $0x4b400000)
ALL(minusTwo, $0xc0000000)
ALL(ln2Hi, $0x3f317200)
ALL(ln2Lo, $0x35bfbe8e)
ALL(c6, $0x3ab60b61)
ALL(c5, $0x3c088889)
ALL(c4, $0x3d2aaaab)
ALL(c3, $0x3e2aaaab)
ALL(half, $0x3f000000)
ALL(one, $0x3f800000)
ALL(sign, $0x80000000)
ALL(bias, $0x0000007f)

// Registers of the three sums over rows:
//   SI fl   DX fr   BX w   CX rows   AX the row
//   Y0, Y1 sums   Y10 pl   Y11 pr   Y12 the least that is divided by   Y13 pl - pr

#define ROWS \
	VMOVUPD   (SI)(AX*8), Y2 \
	VMOVUPD   (DX)(AX*8), Y3 \
	VCVTPS2PD (BX)(AX*4), Y4

// RATIO sets Y5 to w/max(pl·fl + pr·fr, least).
#define RATIO \
	VMULPD Y10, Y2, Y5 \
	VMULPD Y11, Y3, Y6 \
	VADDPD Y6, Y5, Y5  \
	VMAXPD Y12, Y5, Y5 \
	VDIVPD Y5, Y4, Y5

#define ADDSIDES(x) \
	VMULPD x, Y2, Y2  \
	VMULPD x, Y3, Y3  \
	VADDPD Y2, Y0, Y0 \
	VADDPD Y3, Y1, Y1

#define NEXT(loop) \
	ADDQ $4, AX  \
	CMPQ AX, CX  \
	JLT  loop

// func routedMassAVX2(fl, fr *float64, w *float32, n int, l, r *[sumLanes]float64)
TEXT ·routedMassAVX2(SB), NOSPLIT, $0-48
	MOVQ    fl+0(FP), SI
	MOVQ    fr+8(FP), DX
	MOVQ    w+16(FP), BX
	MOVQ    n+24(FP), CX
	MOVQ    l+32(FP), R8
	MOVQ    r+40(FP), R9
	VMOVUPD (R8), Y0
	VMOVUPD (R9), Y1
	XORQ    AX, AX

loop:
	ROWS
	ADDSIDES(Y4)
	NEXT(loop)
	VMOVUPD Y0, (R8)
	VMOVUPD Y1, (R9)
	VZEROUPPER
	RET

// func ratioSumsAVX2(fl, fr *float64, w *float32, n int, pl, pr, least float64, l, r *[sumLanes]float64)
TEXT ·ratioSumsAVX2(SB), NOSPLIT, $0-72
	MOVQ         fl+0(FP), SI
	MOVQ         fr+8(FP), DX
	MOVQ         w+16(FP), BX
	MOVQ         n+24(FP), CX
	VBROADCASTSD pl+32(FP), Y10
	VBROADCASTSD pr+40(FP), Y11
	VBROADCASTSD least+48(FP), Y12
	MOVQ         l+56(FP), R8
	MOVQ         r+64(FP), R9
	VMOVUPD      (R8), Y0
	VMOVUPD      (R9), Y1
	XORQ         AX, AX

loop:
	ROWS
	RATIO
	ADDSIDES(Y5)
	NEXT(loop)
	VMOVUPD Y0, (R8)
	VMOVUPD Y1, (R9)
	VZEROUPPER
	RET

// func addRatiosAVX2(slopes, fl, fr *float64, w *float32, n int, pl, pr, least, d float64)
TEXT ·addRatiosAVX2(SB), NOSPLIT, $0-72
	MOVQ         slopes+0(FP), DI
	MOVQ         fl+8(FP), SI
	MOVQ         fr+16(FP), DX
	MOVQ         w+24(FP), BX
	MOVQ         n+32(FP), CX
	VBROADCASTSD pl+40(FP), Y10
	VBROADCASTSD pr+48(FP), Y11
	VBROADCASTSD least+56(FP), Y12
	VBROADCASTSD d+64(FP), Y13
	XORQ         AX, AX

loop:
	ROWS
	RATIO
	VMULPD  Y13, Y5, Y5
	VADDPD  (DI)(AX*8), Y5, Y5
	VMOVUPD Y5, (DI)(AX*8)
	NEXT(loop)
	VZEROUPPER
	RET

// func tanhsAVX2(x *float32, n int)
//
// tanh32 of n values, a multiple of 8: its operations, each rounded, none fused.
TEXT ·tanhsAVX2(SB), NOSPLIT, $0-16
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS one<>(SB), Y15
	VMOVUPS shift<>(SB), Y14
	VMOVUPS minusTwo<>(SB), Y13
	VMOVUPS ln2Hi<>(SB), Y12
	VMOVUPS ln2Lo<>(SB), Y11
	VMOVUPS c6<>(SB), Y10
	VMOVUPS c5<>(SB), Y9
	VMOVUPS c4<>(SB), Y8
	VMOVUPS c3<>(SB), Y7
	VMOVUPS sign<>(SB), Y6

loop:
	VMOVUPS (SI), Y0
	VANDNPS Y0, Y6, Y1            // a = |x|
	VMINPS  most<>(SB), Y1, Y1    // of NaN most
	VMULPS  log2e<>(SB), Y1, Y2
	VADDPS  Y14, Y2, Y2           // shifted
	VSUBPS  Y14, Y2, Y3           // k
	VMULPS  Y13, Y1, Y4
	VMULPS  Y12, Y3, Y5
	VSUBPS  Y5, Y4, Y4
	VMULPS  Y11, Y3, Y5
	VSUBPS  Y5, Y4, Y4            // r
	VMULPS  Y10, Y4, Y5
	VADDPS  Y9, Y5, Y5
	VMULPS  Y4, Y5, Y5
	VADDPS  Y8, Y5, Y5
	VMULPS  Y4, Y5, Y5
	VADDPS  Y7, Y5, Y5
	VMULPS  Y4, Y5, Y5
	VADDPS  half<>(SB), Y5, Y5
	VMULPS  Y4, Y5, Y5
	VADDPS  Y15, Y5, Y5
	VMULPS  Y4, Y5, Y5
	VADDPS  Y15, Y5, Y5           // p
	VPADDD  bias<>(SB), Y2, Y2
	VPSLLD  $23, Y2, Y2
	VMULPS  Y2, Y5, Y5            // e
	VSUBPS  Y5, Y15, Y1
	VADDPS  Y5, Y15, Y2
	VDIVPS  Y2, Y1, Y1
	VANDPS  Y6, Y0, Y0
	VORPS   Y0, Y1, Y1
	VMOVUPS Y1, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func tanhSlopesAVX2(t, d *float32, n int, w float32)
TEXT ·tanhSlopesAVX2(SB), NOSPLIT, $0-28
	MOVQ         t+0(FP), SI
	MOVQ         d+8(FP), DX
	MOVQ         n+16(FP), CX
	VBROADCASTSS w+24(FP), Y10
	VMOVUPS      one<>(SB), Y15

loop:
	VMOVUPS (SI), Y0
	VMULPS  Y0, Y0, Y0
	VSUBPS  Y0, Y15, Y0
	VMULPS  (DX), Y10, Y1
	VMULPS  Y1, Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET
