//go:build !purego

#include "textflag.h"

DATA half32<>+0(SB)/4, $0x3f000000
GLOBL half32<>(SB), RODATA|NOPTR, $4
DATA one32<>+0(SB)/4, $0x3f800000
GLOBL one32<>(SB), RODATA|NOPTR, $4
DATA half64<>+0(SB)/8, $0x3fe0000000000000
GLOBL half64<>(SB), RODATA|NOPTR, $8
DATA one64<>+0(SB)/8, $0x3ff0000000000000
GLOBL one64<>(SB), RODATA|NOPTR, $8

// Twelve sums that do not wait for each other: more than a core needs for two
// instructions a cycle of a latency of four or five.

#define ZEROY(XOR) \
	XOR Y0, Y0, Y0 \
	XOR Y1, Y1, Y1 \
	XOR Y2, Y2, Y2 \
	XOR Y3, Y3, Y3 \
	XOR Y4, Y4, Y4 \
	XOR Y5, Y5, Y5 \
	XOR Y6, Y6, Y6 \
	XOR Y7, Y7, Y7 \
	XOR Y8, Y8, Y8 \
	XOR Y9, Y9, Y9 \
	XOR Y10, Y10, Y10 \
	XOR Y11, Y11, Y11

// Each sum is set to itself times Y12, plus Y13.
#define FMAY(FMA) \
	FMA Y13, Y12, Y0 \
	FMA Y13, Y12, Y1 \
	FMA Y13, Y12, Y2 \
	FMA Y13, Y12, Y3 \
	FMA Y13, Y12, Y4 \
	FMA Y13, Y12, Y5 \
	FMA Y13, Y12, Y6 \
	FMA Y13, Y12, Y7 \
	FMA Y13, Y12, Y8 \
	FMA Y13, Y12, Y9 \
	FMA Y13, Y12, Y10 \
	FMA Y13, Y12, Y11

#define ZEROZ(XOR) \
	XOR Z0, Z0, Z0 \
	XOR Z1, Z1, Z1 \
	XOR Z2, Z2, Z2 \
	XOR Z3, Z3, Z3 \
	XOR Z4, Z4, Z4 \
	XOR Z5, Z5, Z5 \
	XOR Z6, Z6, Z6 \
	XOR Z7, Z7, Z7 \
	XOR Z8, Z8, Z8 \
	XOR Z9, Z9, Z9 \
	XOR Z10, Z10, Z10 \
	XOR Z11, Z11, Z11

// Each sum is set to itself times Z12, plus Z13.
#define FMAZ(FMA) \
	FMA Z13, Z12, Z0 \
	FMA Z13, Z12, Z1 \
	FMA Z13, Z12, Z2 \
	FMA Z13, Z12, Z3 \
	FMA Z13, Z12, Z4 \
	FMA Z13, Z12, Z5 \
	FMA Z13, Z12, Z6 \
	FMA Z13, Z12, Z7 \
	FMA Z13, Z12, Z8 \
	FMA Z13, Z12, Z9 \
	FMA Z13, Z12, Z10 \
	FMA Z13, Z12, Z11

// func fma32AVX2(rounds int, out *float32)
TEXT ·fma32AVX2(SB), NOSPLIT, $0-16
	MOVQ         rounds+0(FP), CX
	MOVQ         out+8(FP), DI
	VBROADCASTSS half32<>(SB), Y12
	VBROADCASTSS one32<>(SB), Y13
	ZEROY(VXORPS)

loop:
	FMAY(VFMADD213PS)
	DECQ    CX
	JNZ     loop
	VADDPS  Y1, Y0, Y0
	VADDPS  Y3, Y2, Y2
	VADDPS  Y5, Y4, Y4
	VADDPS  Y7, Y6, Y6
	VADDPS  Y9, Y8, Y8
	VADDPS  Y11, Y10, Y10
	VADDPS  Y2, Y0, Y0
	VADDPS  Y6, Y4, Y4
	VADDPS  Y10, Y8, Y8
	VADDPS  Y4, Y0, Y0
	VADDPS  Y8, Y0, Y0
	VMOVUPS Y0, (DI)
	VZEROUPPER
	RET

// func fma64AVX2(rounds int, out *float64)
TEXT ·fma64AVX2(SB), NOSPLIT, $0-16
	MOVQ         rounds+0(FP), CX
	MOVQ         out+8(FP), DI
	VBROADCASTSD half64<>(SB), Y12
	VBROADCASTSD one64<>(SB), Y13
	ZEROY(VXORPD)

loop:
	FMAY(VFMADD213PD)
	DECQ    CX
	JNZ     loop
	VADDPD  Y1, Y0, Y0
	VADDPD  Y3, Y2, Y2
	VADDPD  Y5, Y4, Y4
	VADDPD  Y7, Y6, Y6
	VADDPD  Y9, Y8, Y8
	VADDPD  Y11, Y10, Y10
	VADDPD  Y2, Y0, Y0
	VADDPD  Y6, Y4, Y4
	VADDPD  Y10, Y8, Y8
	VADDPD  Y4, Y0, Y0
	VADDPD  Y8, Y0, Y0
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET

// func fma32AVX512(rounds int, out *float32)
TEXT ·fma32AVX512(SB), NOSPLIT, $0-16
	MOVQ         rounds+0(FP), CX
	MOVQ         out+8(FP), DI
	VBROADCASTSS half32<>(SB), Z12
	VBROADCASTSS one32<>(SB), Z13
	ZEROZ(VPXORQ)

loop:
	FMAZ(VFMADD213PS)
	DECQ    CX
	JNZ     loop
	VADDPS  Z1, Z0, Z0
	VADDPS  Z3, Z2, Z2
	VADDPS  Z5, Z4, Z4
	VADDPS  Z7, Z6, Z6
	VADDPS  Z9, Z8, Z8
	VADDPS  Z11, Z10, Z10
	VADDPS  Z2, Z0, Z0
	VADDPS  Z6, Z4, Z4
	VADDPS  Z10, Z8, Z8
	VADDPS  Z4, Z0, Z0
	VADDPS  Z8, Z0, Z0
	VMOVUPS Z0, (DI)
	VZEROUPPER
	RET

// func fma64AVX512(rounds int, out *float64)
TEXT ·fma64AVX512(SB), NOSPLIT, $0-16
	MOVQ         rounds+0(FP), CX
	MOVQ         out+8(FP), DI
	VBROADCASTSD half64<>(SB), Z12
	VBROADCASTSD one64<>(SB), Z13
	ZEROZ(VPXORQ)

loop:
	FMAZ(VFMADD213PD)
	DECQ    CX
	JNZ     loop
	VADDPD  Z1, Z0, Z0
	VADDPD  Z3, Z2, Z2
	VADDPD  Z5, Z4, Z4
	VADDPD  Z7, Z6, Z6
	VADDPD  Z9, Z8, Z8
	VADDPD  Z11, Z10, Z10
	VADDPD  Z2, Z0, Z0
	VADDPD  Z6, Z4, Z4
	VADDPD  Z10, Z8, Z8
	VADDPD  Z4, Z0, Z0
	VADDPD  Z8, Z0, Z0
	VMOVUPD Z0, (DI)
	VZEROUPPER
	RET

// func streamAVX2(y, x *float32, n int, a float32)
//
// y = y + a·x for n values, a multiple of 32.
TEXT ·streamAVX2(SB), NOSPLIT, $0-28
	MOVQ         y+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y15
	SUBQ         $32, CX
	JLT          done

loop:
	VMOVUPS     (DI), Y0
	VMOVUPS     32(DI), Y1
	VMOVUPS     64(DI), Y2
	VMOVUPS     96(DI), Y3
	VFMADD231PS (SI), Y15, Y0
	VFMADD231PS 32(SI), Y15, Y1
	VFMADD231PS 64(SI), Y15, Y2
	VFMADD231PS 96(SI), Y15, Y3
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	VMOVUPS     Y2, 64(DI)
	VMOVUPS     Y3, 96(DI)
	ADDQ        $128, DI
	ADDQ        $128, SI
	SUBQ        $32, CX
	JGE         loop

done:
	VZEROUPPER
	RET

// func streamAVX512(y, x *float32, n int, a float32)
//
// streamAVX2 with vectors of 16, n a multiple of 64.
TEXT ·streamAVX512(SB), NOSPLIT, $0-28
	MOVQ         y+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Z15
	SUBQ         $64, CX
	JLT          done

loop:
	VMOVUPS     (DI), Z0
	VMOVUPS     64(DI), Z1
	VMOVUPS     128(DI), Z2
	VMOVUPS     192(DI), Z3
	VFMADD231PS (SI), Z15, Z0
	VFMADD231PS 64(SI), Z15, Z1
	VFMADD231PS 128(SI), Z15, Z2
	VFMADD231PS 192(SI), Z15, Z3
	VMOVUPS     Z0, (DI)
	VMOVUPS     Z1, 64(DI)
	VMOVUPS     Z2, 128(DI)
	VMOVUPS     Z3, 192(DI)
	ADDQ        $256, DI
	ADDQ        $256, SI
	SUBQ        $64, CX
	JGE         loop

done:
	VZEROUPPER
	RET
