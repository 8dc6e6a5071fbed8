//go:build !purego

#include "textflag.h"

// Registers:
//   DI dst, R12 index           SI a, BX b          R13 bytes of a row
//   R8, R10 aIndex and its end  R9, R11 bIndex's    DX the lesser of the two indices, then a place in the row
//   R14, R15 all ones where a has the row, and b    AX, CX their rows, or the other's

// MERGE takes row after row. A row that one list lacks is the other's with all bits masked off, so
// that no branch depends on which has it.
#define MERGE(MASKS, VECTOR) \
	MOVQ dst+0(FP), DI       \
	MOVQ index+8(FP), R12    \
	MOVQ a+16(FP), SI        \
	MOVQ b+24(FP), BX        \
	MOVQ aIndex+32(FP), R8   \
	MOVQ bIndex+40(FP), R9   \
	MOVQ aRows+48(FP), R10   \
	MOVQ bRows+56(FP), R11   \
	MOVQ width+64(FP), R13   \
	LEAQ (R8)(R10*4), R10    \
	LEAQ (R9)(R11*4), R11    \
	SHLQ $2, R13             \
	MOVQ room+72(FP), AX     \
	LEAQ (R12)(AX*4), AX     \
	MOVQ AX, end-8(SP)       \
row:                         \
	CMPQ R12, end-8(SP)      \
	JEQ done                 \
	CMPQ R8, R10             \
	JEQ done                 \
	CMPQ R9, R11             \
	JEQ done                 \
	MOVL (R8), AX            \
	MOVL (R9), CX            \
	XORL R14, R14            \
	XORL R15, R15            \
	MOVL AX, DX              \
	CMPL AX, CX              \
	CMOVLHI CX, DX           \
	SETLS R14                \
	SETCC R15                \
	MOVL DX, (R12)           \
	ADDQ $4, R12             \
	LEAQ (R8)(R14*4), R8     \
	LEAQ (R9)(R15*4), R9     \
	NEGQ R14                 \
	NEGQ R15                 \
	MASKS                    \
	MOVQ SI, AX              \
	MOVQ BX, CX              \
	TESTQ R14, R14           \
	CMOVQEQ BX, AX           \
	TESTQ R15, R15           \
	CMOVQEQ SI, CX           \
	ANDQ R13, R14            \
	ANDQ R13, R15            \
	ADDQ R14, SI             \
	ADDQ R15, BX             \
	XORQ DX, DX              \
vector:                      \
	VECTOR                   \
	CMPQ DX, R13             \
	JLT vector               \
	ADDQ R13, DI             \
	JMP row                  \
done:                        \
	VZEROUPPER               \
	SUBQ aIndex+32(FP), R8   \
	SUBQ bIndex+40(FP), R9   \
	SUBQ index+8(FP), R12    \
	SHRQ $2, R8              \
	SHRQ $2, R9              \
	SHRQ $2, R12             \
	MOVQ R8, i+80(FP)        \
	MOVQ R9, j+88(FP)        \
	MOVQ R12, n+96(FP)       \
	RET

#define MASKS8            \
	VMOVQ R14, X14        \
	VMOVQ R15, X15        \
	VPBROADCASTD X14, Y14 \
	VPBROADCASTD X15, Y15

#define VECTOR8                \
	VANDPS (AX)(DX*1), Y14, Y0 \
	VANDPS (CX)(DX*1), Y15, Y1 \
	VADDPS Y1, Y0, Y0          \
	VMOVUPS Y0, (DI)(DX*1)     \
	ADDQ $32, DX

#define MASKS64   \
	KMOVW R14, K1 \
	KMOVW R15, K2

#define VECTOR64                    \
	VMOVUPS.Z 0(AX)(DX*1), K1, Z0   \
	VMOVUPS.Z 64(AX)(DX*1), K1, Z1  \
	VMOVUPS.Z 128(AX)(DX*1), K1, Z2 \
	VMOVUPS.Z 192(AX)(DX*1), K1, Z3 \
	VMOVUPS.Z 0(CX)(DX*1), K2, Z4   \
	VMOVUPS.Z 64(CX)(DX*1), K2, Z5  \
	VMOVUPS.Z 128(CX)(DX*1), K2, Z6 \
	VMOVUPS.Z 192(CX)(DX*1), K2, Z7 \
	VADDPS Z4, Z0, Z0               \
	VADDPS Z5, Z1, Z1               \
	VADDPS Z6, Z2, Z2               \
	VADDPS Z7, Z3, Z3               \
	VMOVUPS Z0, 0(DI)(DX*1)         \
	VMOVUPS Z1, 64(DI)(DX*1)        \
	VMOVUPS Z2, 128(DI)(DX*1)       \
	VMOVUPS Z3, 192(DI)(DX*1)       \
	ADDQ $256, DX

// func mergeRowsAVX2(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width, room int) (i, j, n int)
//
// width is a multiple of 8 and not 0; dst has room for so many rows.
TEXT ·mergeRowsAVX2(SB), NOSPLIT, $8-104
	MERGE(MASKS8, VECTOR8)

// func mergeRowsAVX512(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width, room int) (i, j, n int)
//
// is mergeRowsAVX2 with wider vectors, for a width that is a multiple of 64.
TEXT ·mergeRowsAVX512(SB), NOSPLIT, $8-104
	MERGE(MASKS64, VECTOR64)
