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

#define ZERO12(XOR, A) \
	XOR A##0, A##0, A##0    \
	XOR A##1, A##1, A##1    \
	XOR A##2, A##2, A##2    \
	XOR A##3, A##3, A##3    \
	XOR A##4, A##4, A##4    \
	XOR A##5, A##5, A##5    \
	XOR A##6, A##6, A##6    \
	XOR A##7, A##7, A##7    \
	XOR A##8, A##8, A##8    \
	XOR A##9, A##9, A##9    \
	XOR A##10, A##10, A##10 \
	XOR A##11, A##11, A##11

// A = A·a12 + a13
#define FMA12(FMA, A) \
	FMA A##13, A##12, A##0  \
	FMA A##13, A##12, A##1  \
	FMA A##13, A##12, A##2  \
	FMA A##13, A##12, A##3  \
	FMA A##13, A##12, A##4  \
	FMA A##13, A##12, A##5  \
	FMA A##13, A##12, A##6  \
	FMA A##13, A##12, A##7  \
	FMA A##13, A##12, A##8  \
	FMA A##13, A##12, A##9  \
	FMA A##13, A##12, A##10 \
	FMA A##13, A##12, A##11

// func fma32AVX2(rounds int, out *float32)
TEXT ·fma32AVX2(SB), NOSPLIT, $0-16
	MOVQ         rounds+0(FP), CX
	MOVQ         out+8(FP), DI
	VBROADCASTSS half32<>(SB), Y12
	VBROADCASTSS one32<>(SB), Y13
	ZERO12(VXORPS, Y)

loop:
	FMA12(VFMADD213PS, Y)
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
	ZERO12(VXORPD, Y)

loop:
	FMA12(VFMADD213PD, Y)
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
	ZERO12(VPXORQ, Z)

loop:
	FMA12(VFMADD213PS, Z)
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
	ZERO12(VPXORQ, Z)

loop:
	FMA12(VFMADD213PD, Z)
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
