//go:build !purego

#include "textflag.h"

// Lane masks: 8 words of ones, then 8 of zeros; a window on it has r ones.
DATA lanes<>+0(SB)/8, $-1
DATA lanes<>+8(SB)/8, $-1
DATA lanes<>+16(SB)/8, $-1
DATA lanes<>+24(SB)/8, $-1
DATA lanes<>+32(SB)/8, $0
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// Registers of both kernels:
//   DI dst at this block of columns   CX columns left
//   SI a                              DX rows
//   BX m at this block of columns     R8 bytes of a row of m
//   R9, R11 a and rows left in this pass
//   R10 the row of m                  R12 index in this pass, R13 rows of m
//   Y8 a[k] in all lanes, Y9 mask of the last vector, Y10.. masked loads
// Columns go in blocks of 64, then 32, then one of 1 to 32 whose last vector is
// masked. Each block takes the rows in order.

// NEXT moves on to the next row of a dense pass.
#define NEXT(loop) \
	ADDQ $4, R9  \
	ADDQ R8, R10 \
	DECQ R11     \
	JNZ  loop

// ROW finds the row of a sparse pass, or leaves where there is none.
#define ROW \
	MOVL  (R12), R10 \
	CMPQ  R10, R13   \
	JAE   outside    \
	IMULQ R8, R10    \
	ADDQ  BX, R10

// NEXTAT moves on to the next index of a sparse pass.
#define NEXTAT(loop) \
	ADDQ $4, R9  \
	ADDQ $4, R12 \
	DECQ R11     \
	JNZ  loop

#define LOAD4(off, a, b, c, d) \
	VMOVUPS (off+0)(DI), a  \
	VMOVUPS (off+32)(DI), b \
	VMOVUPS (off+64)(DI), c \
	VMOVUPS (off+96)(DI), d

#define STORE4(off, a, b, c, d) \
	VMOVUPS a, (off+0)(DI)  \
	VMOVUPS b, (off+32)(DI) \
	VMOVUPS c, (off+64)(DI) \
	VMOVUPS d, (off+96)(DI)

#define FMA4(off, a, b, c, d) \
	VFMADD231PS (off+0)(R10), Y8, a  \
	VFMADD231PS (off+32)(R10), Y8, b \
	VFMADD231PS (off+64)(R10), Y8, c \
	VFMADD231PS (off+96)(R10), Y8, d

#define FMALAST(off, y) \
	VMASKMOVPS  (off)(R10), Y9, Y10 \
	VFMADD231PS Y10, Y8, y

// MASK makes the mask of the last vector for the 1 to 32 columns of CX, and puts
// the number of vectors into AX.
#define MASK \
	LEAQ    7(CX), AX             \
	SHRQ    $3, AX                \
	MOVQ    AX, R14               \
	SHLQ    $3, R14               \
	SUBQ    CX, R14               \
	LEAQ    lanes<>(SB), R15      \
	VMOVUPS (R15)(R14*4), Y9

// func mulAddRowsAVX2(dst *float32, n int, a *float32, rows int, m *float32)
TEXT ·mulAddRowsAVX2(SB), NOSPLIT, $0-40
	MOVQ  dst+0(FP), DI
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  rows+24(FP), DX
	MOVQ  m+32(FP), BX
	LEAQ  (CX*4), R8
	TESTQ DX, DX
	JZ    done

block64:
	CMPQ CX, $64
	JLT  block32
	LOAD4(0, Y0, Y1, Y2, Y3)
	LOAD4(128, Y4, Y5, Y6, Y7)
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ BX, R10

loop64:
	VBROADCASTSS (R9), Y8
	FMA4(0, Y0, Y1, Y2, Y3)
	FMA4(128, Y4, Y5, Y6, Y7)
	NEXT(loop64)
	STORE4(0, Y0, Y1, Y2, Y3)
	STORE4(128, Y4, Y5, Y6, Y7)
	ADDQ $256, DI
	ADDQ $256, BX
	SUBQ $64, CX
	JMP  block64

block32:
	CMPQ CX, $32
	JLE  last
	LOAD4(0, Y0, Y1, Y2, Y3)
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ BX, R10

loop32:
	VBROADCASTSS (R9), Y8
	FMA4(0, Y0, Y1, Y2, Y3)
	NEXT(loop32)
	STORE4(0, Y0, Y1, Y2, Y3)
	ADDQ $128, DI
	ADDQ $128, BX
	SUBQ $32, CX

last:
	TESTQ CX, CX
	JZ    done
	MASK
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ BX, R10
	CMPQ AX, $2
	JLT  last1
	JEQ  last2
	CMPQ AX, $3
	JEQ  last3

	VMOVUPS 0(DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMASKMOVPS 96(DI), Y9, Y3

loop4:
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	VFMADD231PS 32(R10), Y8, Y1
	VFMADD231PS 64(R10), Y8, Y2
	FMALAST(96, Y3)
	NEXT(loop4)
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMASKMOVPS Y3, Y9, 96(DI)
	JMP  done

last3:
	VMOVUPS 0(DI), Y0
	VMOVUPS 32(DI), Y1
	VMASKMOVPS 64(DI), Y9, Y2

loop3:
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	VFMADD231PS 32(R10), Y8, Y1
	FMALAST(64, Y2)
	NEXT(loop3)
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMASKMOVPS Y2, Y9, 64(DI)
	JMP  done

last2:
	VMOVUPS 0(DI), Y0
	VMASKMOVPS 32(DI), Y9, Y1

loop2:
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	FMALAST(32, Y1)
	NEXT(loop2)
	VMOVUPS Y0, 0(DI)
	VMASKMOVPS Y1, Y9, 32(DI)
	JMP  done

last1:
	VMASKMOVPS 0(DI), Y9, Y0

loop1:
	VBROADCASTSS (R9), Y8
	FMALAST(0, Y0)
	NEXT(loop1)
	VMASKMOVPS Y0, Y9, 0(DI)

done:
	VZEROUPPER
	RET

// func mulAddRowsAtAVX2(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool
TEXT ·mulAddRowsAtAVX2(SB), NOSPLIT, $0-57
	MOVQ  dst+0(FP), DI
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  rows+24(FP), DX
	MOVQ  m+32(FP), BX
	MOVQ  limit+48(FP), R13
	LEAQ  (CX*4), R8
	TESTQ DX, DX
	JZ    done

block64:
	CMPQ CX, $64
	JLT  block32
	LOAD4(0, Y0, Y1, Y2, Y3)
	LOAD4(128, Y4, Y5, Y6, Y7)
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ index+40(FP), R12

loop64:
	ROW
	VBROADCASTSS (R9), Y8
	FMA4(0, Y0, Y1, Y2, Y3)
	FMA4(128, Y4, Y5, Y6, Y7)
	NEXTAT(loop64)
	STORE4(0, Y0, Y1, Y2, Y3)
	STORE4(128, Y4, Y5, Y6, Y7)
	ADDQ $256, DI
	ADDQ $256, BX
	SUBQ $64, CX
	JMP  block64

block32:
	CMPQ CX, $32
	JLE  last
	LOAD4(0, Y0, Y1, Y2, Y3)
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ index+40(FP), R12

loop32:
	ROW
	VBROADCASTSS (R9), Y8
	FMA4(0, Y0, Y1, Y2, Y3)
	NEXTAT(loop32)
	STORE4(0, Y0, Y1, Y2, Y3)
	ADDQ $128, DI
	ADDQ $128, BX
	SUBQ $32, CX

last:
	TESTQ CX, CX
	JZ    done
	MASK
	MOVQ SI, R9
	MOVQ DX, R11
	MOVQ index+40(FP), R12
	CMPQ AX, $2
	JLT  last1
	JEQ  last2
	CMPQ AX, $3
	JEQ  last3

	VMOVUPS 0(DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMASKMOVPS 96(DI), Y9, Y3

loop4:
	ROW
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	VFMADD231PS 32(R10), Y8, Y1
	VFMADD231PS 64(R10), Y8, Y2
	FMALAST(96, Y3)
	NEXTAT(loop4)
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMASKMOVPS Y3, Y9, 96(DI)
	JMP  done

last3:
	VMOVUPS 0(DI), Y0
	VMOVUPS 32(DI), Y1
	VMASKMOVPS 64(DI), Y9, Y2

loop3:
	ROW
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	VFMADD231PS 32(R10), Y8, Y1
	FMALAST(64, Y2)
	NEXTAT(loop3)
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMASKMOVPS Y2, Y9, 64(DI)
	JMP  done

last2:
	VMOVUPS 0(DI), Y0
	VMASKMOVPS 32(DI), Y9, Y1

loop2:
	ROW
	VBROADCASTSS (R9), Y8
	VFMADD231PS 0(R10), Y8, Y0
	FMALAST(32, Y1)
	NEXTAT(loop2)
	VMOVUPS Y0, 0(DI)
	VMASKMOVPS Y1, Y9, 32(DI)
	JMP  done

last1:
	VMASKMOVPS 0(DI), Y9, Y0

loop1:
	ROW
	VBROADCASTSS (R9), Y8
	FMALAST(0, Y0)
	NEXTAT(loop1)
	VMASKMOVPS Y0, Y9, 0(DI)

done:
	VZEROUPPER
	MOVB $1, ret+56(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+56(FP)
	RET
