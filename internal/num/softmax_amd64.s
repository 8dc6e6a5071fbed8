//go:build !purego

#include "textflag.h"

// BELOW is a constant of expBelow in all lanes of a vector, at a place in its table.
#define BELOW(at, x) \
	DATA below<>+(at)(SB)/8, x    \
	DATA below<>+(at+8)(SB)/8, x  \
	DATA below<>+(at+16)(SB)/8, x \
	DATA below<>+(at+24)(SB)/8, x

BELOW(0, $0x3ff71547652b82fe) // 1 / ln 2
BELOW(32, $0x4338000000000000) // expShift
BELOW(64, $0xbfe62e42fefa39ef) // -expHi
BELOW(96, $0xbc7abc9e3b39803f) // -expLo
BELOW(128, $0xc085e00000000000) // belowLeast
BELOW(160, $0x00000000000003ff) // the bias of exponents
BELOW(192, $0x3ff0000000000000) // 1
BELOW(224, $0x3de6124613a86d09) // 1/13!
BELOW(256, $0x3e21eed8eff8d898) // 1/12!
BELOW(288, $0x3e5ae64567f544e4) // 1/11!
BELOW(320, $0x3e927e4fb7789f5c) // 1/10!
BELOW(352, $0x3ec71de3a556c734) // 1/9!
BELOW(384, $0x3efa01a01a01a01a) // 1/8!
BELOW(416, $0x3f2a01a01a01a01a) // 1/7!
BELOW(448, $0x3f56c16c16c16c17) // 1/6!
BELOW(480, $0x3f81111111111111) // 1/5!
BELOW(512, $0x3fa5555555555555) // 1/4!
BELOW(544, $0x3fc5555555555555) // 1/3!
BELOW(576, $0x3fe0000000000000) // 1/2!
GLOBL below<>(SB), RODATA|NOPTR, $608

// EXPONENTIAL sets V1 to expBelow(V1); V2 and V3 change.
#define EXPONENTIAL \
	VMAXPD      V1, LEAST, V1    \
	VMOVAPD     SHIFT, V2        \
	VFMADD231PD INV, V1, V2      \
	VSUBPD      SHIFT, V2, V3    \
	VPADDQ      EXPONENT, V2, V2 \
	VPSLLQ      $52, V2, V2      \
	VFMADD231PD MINUSHI, V3, V1  \
	VFMADD231PD MINUSLO, V3, V1  \
	VMOVAPD     C13, V3          \
	VFMADD213PD C12, V1, V3    \
	VFMADD213PD C11, V1, V3    \
	VFMADD213PD C10, V1, V3    \
	VFMADD213PD C9, V1, V3     \
	VFMADD213PD C8, V1, V3     \
	VFMADD213PD C7, V1, V3     \
	VFMADD213PD C6, V1, V3     \
	VFMADD213PD C5, V1, V3     \
	VFMADD213PD C4, V1, V3     \
	VFMADD213PD C3, V1, V3     \
	VFMADD213PD C2, V1, V3     \
	VFMADD213PD ONE, V1, V3      \
	VFMADD213PD ONE, V1, V3      \
	VMULPD      V2, V3, V1

// SOFTMAX is the body of both kernels: groups of as many rows as a vector has.
//   DI the group, SI a column of it     CX columns left
//   R8 totals, R9 of a column           R10, R11 the rows' greatest scores and sums
//   DX bytes of rows done, R12 of all   R13 bytes that rows go round in TotalLanes
// V4 is a row's greatest score, V5 its sum, V6 one over that.
#define SOFTMAX \
	MOVQ rows+16(FP), R12   \
	SHLQ $3, R12            \
	MOVQ most+32(FP), R10   \
	MOVQ sum+40(FP), R11    \
	XORQ DX, DX             \
group: \
	MOVQ v+0(FP), DI        \
	ADDQ DX, DI             \
	MOVQ totals+24(FP), R8  \
	MOVQ DX, R13            \
	ANDQ $63, R13           \
	ADDQ R13, R8            \
	MOVQ DI, SI             \
	MOVQ n+8(FP), CX        \
	VMOVUPD (DI), V4        \
	DECQ CX                 \
	JZ   exponentials       \
greatest: \
	ADDQ $512, SI           \
	VMAXPD (SI), V4, V4     \
	DECQ CX                 \
	JNZ  greatest           \
exponentials: \
	VXORPD V5, V5, V5       \
	MOVQ DI, SI             \
	MOVQ n+8(FP), CX        \
exponential: \
	VMOVUPD (SI), V1        \
	VSUBPD  V4, V1, V1      \
	EXPONENTIAL             \
	VMOVUPD V1, (SI)        \
	VADDPD  V1, V5, V5      \
	ADDQ    $512, SI        \
	DECQ    CX              \
	JNZ     exponential     \
	VMOVUPD V4, (R10)(DX*1) \
	VMOVUPD V5, (R11)(DX*1) \
	VMOVUPD ONE, V6         \
	VDIVPD  V5, V6, V6      \
	MOVQ    DI, SI          \
	MOVQ    R8, R9          \
	MOVQ    n+8(FP), CX     \
share: \
	VMULPD  (SI), V6, V1    \
	VMOVUPD V1, (SI)        \
	VADDPD  (R9), V1, V1    \
	VMOVUPD V1, (R9)        \
	ADDQ    $512, SI        \
	ADDQ    $64, R9         \
	DECQ    CX              \
	JNZ     share           \
	ADDQ    $W, DX          \
	CMPQ    DX, R12         \
	JLT     group           \
	VZEROUPPER              \
	RET

#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define W 32
#define LEAST Y15
#define SHIFT Y14
#define INV Y13
#define EXPONENT Y12
#define MINUSHI Y11
#define MINUSLO Y10
#define ONE Y8
#define C13 Y9
#define C12 Y7
#define C11 Y0
#define C10 below<>+320(SB)
#define C9 below<>+352(SB)
#define C8 below<>+384(SB)
#define C7 below<>+416(SB)
#define C6 below<>+448(SB)
#define C5 below<>+480(SB)
#define C4 below<>+512(SB)
#define C3 below<>+544(SB)
#define C2 below<>+576(SB)

// func softmaxAVX2(v *float64, n, rows int, totals, most, sum *float64)
//
// rows is a multiple of 8. Neither it nor n is 0.
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-48
	VMOVUPD below<>+128(SB), LEAST
	VMOVUPD below<>+32(SB), SHIFT
	VMOVUPD below<>+0(SB), INV
	VMOVUPD below<>+160(SB), EXPONENT
	VMOVUPD below<>+64(SB), MINUSHI
	VMOVUPD below<>+96(SB), MINUSLO
	VMOVUPD below<>+192(SB), ONE
	VMOVUPD below<>+224(SB), C13
	VMOVUPD below<>+256(SB), C12
	VMOVUPD below<>+288(SB), C11
	SOFTMAX

#undef V1
#define V1 Z1
#undef V2
#define V2 Z2
#undef V3
#define V3 Z3
#undef V4
#define V4 Z4
#undef V5
#define V5 Z5
#undef V6
#define V6 Z6
#undef W
#define W 64
#undef LEAST
#define LEAST Z8
#undef SHIFT
#define SHIFT Z9
#undef INV
#define INV Z10
#undef EXPONENT
#define EXPONENT Z11
#undef MINUSHI
#define MINUSHI Z12
#undef MINUSLO
#define MINUSLO Z13
#undef ONE
#define ONE Z14
#undef C13
#define C13 Z15
#undef C12
#define C12 Z16
#undef C11
#define C11 Z17
#undef C10
#define C10 Z18
#undef C9
#define C9 Z19
#undef C8
#define C8 Z20
#undef C7
#define C7 Z21
#undef C6
#define C6 Z22
#undef C5
#define C5 Z23
#undef C4
#define C4 Z24
#undef C3
#define C3 Z25
#undef C2
#define C2 Z26

// func softmaxAVX512(v *float64, n, rows int, totals, most, sum *float64)
//
// is softmaxAVX2.
TEXT ·softmaxAVX512(SB), NOSPLIT, $0-48
	VBROADCASTSD below<>+128(SB), LEAST
	VBROADCASTSD below<>+32(SB), SHIFT
	VBROADCASTSD below<>+0(SB), INV
	VBROADCASTSD below<>+160(SB), EXPONENT
	VBROADCASTSD below<>+64(SB), MINUSHI
	VBROADCASTSD below<>+96(SB), MINUSLO
	VBROADCASTSD below<>+192(SB), ONE
	VBROADCASTSD below<>+224(SB), C13
	VBROADCASTSD below<>+256(SB), C12
	VBROADCASTSD below<>+288(SB), C11
	VBROADCASTSD below<>+320(SB), C10
	VBROADCASTSD below<>+352(SB), C9
	VBROADCASTSD below<>+384(SB), C8
	VBROADCASTSD below<>+416(SB), C7
	VBROADCASTSD below<>+448(SB), C6
	VBROADCASTSD below<>+480(SB), C5
	VBROADCASTSD below<>+512(SB), C4
	VBROADCASTSD below<>+544(SB), C3
	VBROADCASTSD below<>+576(SB), C2
	SOFTMAX
