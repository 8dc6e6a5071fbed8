//go:build !purego

#include "textflag.h"

// Where the halves of two vectors go: the columns of eight values of their first and third quarters, and of the others.
DATA turnEven<>+0(SB)/8, $0
DATA turnEven<>+8(SB)/8, $1
DATA turnEven<>+16(SB)/8, $8
DATA turnEven<>+24(SB)/8, $9
DATA turnEven<>+32(SB)/8, $4
DATA turnEven<>+40(SB)/8, $5
DATA turnEven<>+48(SB)/8, $12
DATA turnEven<>+56(SB)/8, $13
GLOBL turnEven<>(SB), RODATA|NOPTR, $64
DATA turnOdd<>+0(SB)/8, $2
DATA turnOdd<>+8(SB)/8, $3
DATA turnOdd<>+16(SB)/8, $10
DATA turnOdd<>+24(SB)/8, $11
DATA turnOdd<>+32(SB)/8, $6
DATA turnOdd<>+40(SB)/8, $7
DATA turnOdd<>+48(SB)/8, $14
DATA turnOdd<>+56(SB)/8, $15
GLOBL turnOdd<>(SB), RODATA|NOPTR, $64

// ROW loads eight values of two rows of b, eight rows apart.
#define ROW(low, high, y, z) \
	VMOVUPS      low, y         \
	VINSERTF64X4 $1, high, z, z

// COLUMNS stores columns t and t+4 of b, of which x has rows 0 to 3 and 8 to 11, y the others.
#define COLUMNS(x, y, z, to, behind) \
	VMOVAPD   Z16, z     \
	VPERMI2PD y, x, z    \
	VPERMT2PD y, Z17, x  \
	VMOVUPS   z, to      \
	VMOVUPS   x, behind

// func turnAVX512(turned, b *float32, k, columns, stride int)
//
// is turnAVX2 where columns is a multiple of 16, and turned and the rows of b have room for k rounded up to a multiple of 8.
//   SI, R11, R12, R13 rows 0, 4, 8 and 12 of b   R8 bytes of one, R9 of three
//   AX turned, BX four rows on                   R10 bytes of a row of it, DX of three
TEXT ·turnAVX512(SB), NOSPLIT, $0-40
	MOVQ    turned+0(FP), DI
	MOVQ    b+8(FP), R14
	MOVQ    columns+24(FP), R15
	MOVQ    stride+32(FP), R8
	LEAQ    (R15*4), R10
	LEAQ    (R10)(R10*2), DX
	SHLQ    $2, R8
	LEAQ    (R8)(R8*2), R9
	VMOVUPD turnEven<>(SB), Z16
	VMOVUPD turnOdd<>(SB), Z17

sixteen:
	MOVQ k+16(FP), CX
	MOVQ R14, SI
	LEAQ (SI)(R8*4), R11
	LEAQ (SI)(R8*8), R12
	LEAQ (R11)(R8*8), R13
	MOVQ DI, AX
	LEAQ (DI)(R10*4), BX

eight:
	ROW((SI), (R12), Y0, Z0)
	ROW((SI)(R8*1), (R12)(R8*1), Y1, Z1)
	ROW((SI)(R8*2), (R12)(R8*2), Y2, Z2)
	ROW((SI)(R9*1), (R12)(R9*1), Y3, Z3)
	ROW((R11), (R13), Y4, Z4)
	ROW((R11)(R8*1), (R13)(R8*1), Y5, Z5)
	ROW((R11)(R8*2), (R13)(R8*2), Y6, Z6)
	ROW((R11)(R9*1), (R13)(R9*1), Y7, Z7)
	VUNPCKLPS Z1, Z0, Z8
	VUNPCKHPS Z1, Z0, Z9
	VUNPCKLPS Z3, Z2, Z10
	VUNPCKHPS Z3, Z2, Z11
	VUNPCKLPS Z5, Z4, Z12
	VUNPCKHPS Z5, Z4, Z13
	VUNPCKLPS Z7, Z6, Z14
	VUNPCKHPS Z7, Z6, Z15
	VUNPCKLPD Z10, Z8, Z0
	VUNPCKHPD Z10, Z8, Z1
	VUNPCKLPD Z11, Z9, Z2
	VUNPCKHPD Z11, Z9, Z3
	VUNPCKLPD Z14, Z12, Z4
	VUNPCKHPD Z14, Z12, Z5
	VUNPCKLPD Z15, Z13, Z6
	VUNPCKHPD Z15, Z13, Z7
	COLUMNS(Z0, Z4, Z8, (AX), (BX))
	COLUMNS(Z1, Z5, Z9, (AX)(R10*1), (BX)(R10*1))
	COLUMNS(Z2, Z6, Z10, (AX)(R10*2), (BX)(R10*2))
	COLUMNS(Z3, Z7, Z11, (AX)(DX*1), (BX)(DX*1))
	ADDQ $32, SI
	ADDQ $32, R11
	ADDQ $32, R12
	ADDQ $32, R13
	LEAQ (AX)(R10*8), AX
	LEAQ (BX)(R10*8), BX
	SUBQ $8, CX
	JGT  eight
	ADDQ $64, DI
	SHLQ $4, R8
	ADDQ R8, R14
	SHRQ $4, R8
	SUBQ $16, R15
	JGT  sixteen
	VZEROUPPER
	RET
