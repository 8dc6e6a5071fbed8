//go:build !purego

#include "textflag.h"

// func noteRowAsm(word *uint64, bit uint64, columns *uint32, values *float32, n int, first, limits *uint32)
TEXT ·noteRowAsm(SB), NOSPLIT, $0-56
	MOVQ word+0(FP), DI
	MOVQ bit+8(FP), R15
	MOVQ columns+16(FP), R8
	MOVQ values+24(FP), R9
	MOVQ n+32(FP), R10
	MOVQ first+40(FP), R11
	MOVQ limits+48(FP), SI
	LEAQ (R8)(R10*4), R10   // the end of columns
	JMP  check

	// DX is the place of the last limit up to the value BX, of R13 that follow.
half:
	MOVL    R13, CX
	SHRL    $1, CX
	SUBL    CX, R13
	LEAQ    (DX)(CX*4), R12
	CMPL    BX, (R12)
	CMOVQCC R12, DX
	CMPL    R13, $1
	JNE     half

last:
	CMPL BX, (DX)
	JCS  next
	SUBQ SI, DX
	ADDQ DX, DX
	ORQ  R15, (DI)(DX*8)    // a question has 64 bytes of answers

next:
	ADDQ $4, R8
	ADDQ $4, R9

check:
	CMPQ R8, R10
	JGE  done
	MOVL (R8), AX
	MOVL (R9), BX
	ADDQ AX, AX
	BTRL $31, BX            // the sign
	ADCQ $0, AX
	MOVL (R11)(AX*4), DX
	MOVL 4(R11)(AX*4), R13
	SUBL DX, R13            // the questions of the feature
	JEQ  next
	LEAQ (SI)(DX*4), DX
	CMPL R13, $1
	JEQ  last
	JMP  half

done:
	RET

// BORDER loads the question, the slots and the plane of the border at R8.
#define BORDER \
	MOVL    (R8), AX;    \
	MOVBLZX 4(R8), BX;   \
	MOVBLZX 5(R8), CX;   \
	MOVBLZX 6(R8), R10;  \
	MOVBLZX 7(R8), R11;  \
	SHLQ    $6, AX

// DIVIDE makes the rows after the border, of a half, and adds them to the border's plane. A
// setSpace has the planes, 512 bytes for each half, and the slots, 1984 bytes for each.
#define DIVIDE(half, Y) \
	VMOVDQU (32*half)(DX)(AX*1), Y;     \
	VPAND   (1024+1984*half)(DI)(BX*8), Y, Y;  \
	VPOR    (1024+1984*half)(DI)(CX*8), Y, Y;  \
	VMOVDQU Y, (1024+1984*half)(DI)(R10*8);    \
	VPXOR   (512*half)(DI)(R11*8), Y, Y; \
	VMOVDQU Y, (512*half)(DI)(R11*8)

// func divideSetsAVX2(s *setSpace, answers *[blockHalves]rowSet, borders *border, n int)
TEXT ·divideSetsAVX2(SB), NOSPLIT, $0-32
	MOVQ s+0(FP), DI
	MOVQ answers+8(FP), DX
	MOVQ borders+16(FP), R8
	MOVQ n+24(FP), R9
	LEAQ (R8)(R9*8), R9     // the end of borders

border:
	BORDER
	DIVIDE(0, Y0)
	DIVIDE(1, Y1)
	ADDQ $8, R8
	CMPQ R8, R9
	JLT  border
	VZEROUPPER
	RET

// func divideHalfAVX2(s *setSpace, answers *[blockHalves]rowSet, borders *border, n int)
TEXT ·divideHalfAVX2(SB), NOSPLIT, $0-32
	MOVQ s+0(FP), DI
	MOVQ answers+8(FP), DX
	MOVQ borders+16(FP), R8
	MOVQ n+24(FP), R9
	LEAQ (R8)(R9*8), R9

border:
	BORDER
	DIVIDE(0, Y0)
	ADDQ $8, R8
	CMPQ R8, R9
	JLT  border
	VZEROUPPER
	RET

// Which byte of four a lane looks at, and which of its bits.
DATA byteOfLane<>+0(SB)/8, $0x0000000000000000
DATA byteOfLane<>+8(SB)/8, $0x0101010101010101
DATA byteOfLane<>+16(SB)/8, $0x0202020202020202
DATA byteOfLane<>+24(SB)/8, $0x0303030303030303
GLOBL byteOfLane<>(SB), RODATA|NOPTR, $32

DATA bitOfLane<>+0(SB)/8, $0x8040201008040201
DATA bitOfLane<>+8(SB)/8, $0x8040201008040201
DATA bitOfLane<>+16(SB)/8, $0x8040201008040201
DATA bitOfLane<>+24(SB)/8, $0x8040201008040201
GLOBL bitOfLane<>(SB), RODATA|NOPTR, $32

// PLANE takes one plane less, and appends its bits to the codes of 32 rows.
#define PLANE(Y) \
	SUBQ         $32, R10;    \
	VPBROADCASTD (R10), Y2;   \
	VPSHUFB      Y14, Y2, Y2; \
	VPAND        Y15, Y2, Y2; \
	VPCMPEQB     Y15, Y2, Y2; \
	VPADDB       Y, Y, Y;     \
	VPSUBB       Y2, Y, Y

// func numberLeavesAVX2(leaves *uint32, planes *rowSet, count int, numbers *uint16)
TEXT ·numberLeavesAVX2(SB), NOSPLIT, $64-32
	MOVQ    leaves+0(FP), DI
	MOVQ    planes+8(FP), SI
	MOVQ    count+16(FP), CX
	MOVQ    numbers+24(FP), DX
	VMOVDQU byteOfLane<>(SB), Y14
	VMOVDQU bitOfLane<>(SB), Y15
	SHLQ    $5, CX
	LEAQ    256(SI), R9     // the planes of the high byte
	ADDQ    SI, CX          // the end of the planes
	LEAQ    32(SI), R8      // the end of the rows

rows:
	VPXOR Y0, Y0, Y0        // the low bytes
	VPXOR Y1, Y1, Y1        // the high bytes
	MOVQ  CX, R10

high:
	CMPQ R10, R9
	JLE  lows
	PLANE(Y1)
	JMP  high

lows:
	VMOVDQU Y1, high-32(SP)

low:
	CMPQ R10, SI
	JLE  numbers
	PLANE(Y0)
	JMP  low

numbers:
	VMOVDQU Y0, low-64(SP)
	XORL    R11, R11

row:
	MOVBLZX low-64(SP)(R11*1), AX
	MOVBLZX high-32(SP)(R11*1), BX
	SHLL    $8, BX
	ORL     BX, AX
	MOVWLZX (DX)(AX*2), AX
	MOVL    AX, (DI)(R11*4)
	MOVBLZX low-63(SP)(R11*1), AX
	MOVBLZX high-31(SP)(R11*1), BX
	SHLL    $8, BX
	ORL     BX, AX
	MOVWLZX (DX)(AX*2), AX
	MOVL    AX, 4(DI)(R11*4)
	ADDQ    $2, R11
	CMPQ    R11, $32
	JLT     row

	ADDQ $128, DI
	ADDQ $4, SI             // the next 32 rows
	ADDQ $4, R9
	ADDQ $4, CX
	CMPQ SI, R8
	JLT  rows
	VZEROUPPER
	RET
