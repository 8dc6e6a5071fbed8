//go:build !purego

#include "textflag.h"

// Registers of both kernels:
//   SI spans, DX rows left, R11 entry, AX end of the row's entries
//   R9 a, R12 index, BX m at these columns, R8 bytes of a row of m, R13 rows of m, R10 bytes before the row of m
//   DI values of this row at these columns, R15 offsets
// Up to eight columns stay in registers for all entries of a row: four in Y0, and the others in Y1; or a part of Y0, X1 and X2.
// X8 or Y8 is a[k] in all lanes.

#define BEGIN \
	MOVQ spans+8(FP), SI   \
	MOVQ rows+16(FP), DX   \
	MOVQ a+24(FP), R9      \
	MOVQ index+32(FP), R12 \
	MOVQ limit+48(FP), R13 \
	MOVQ n+56(FP), R8      \
	SHLQ $3, R8            \
	MOVQ width+64(FP), CX

// ENTRY sets R10 by the row of m that index names, and Y8 to a[k].
#define ENTRY \
	MOVL         (R12)(R11*4), R10 \
	CMPQ         R10, R13          \
	JAE          outside           \
	IMULQ        R8, R10           \
	VBROADCASTSS (R9)(R11*4), X8   \
	VCVTPS2PD    X8, Y8

#define NEXT(loop) \
	INCQ R11     \
	CMPQ R11, AX \
	JLT  loop

#define OFFSETS1 \
	VMOVSD 0(R15), X0

#define OFFSETS2 \
	VMOVUPD 0(R15), X0

#define OFFSETS3 \
	VMOVUPD 0(R15), X0 \
	VMOVSD 16(R15), X1

#define OFFSETS4 \
	VMOVUPD 0(R15), Y0

#define OFFSETS5 \
	VMOVUPD 0(R15), Y0 \
	VMOVSD 32(R15), X1

#define OFFSETS6 \
	VMOVUPD 0(R15), Y0 \
	VMOVUPD 32(R15), X1

#define OFFSETS7 \
	VMOVUPD 0(R15), Y0 \
	VMOVUPD 32(R15), X1 \
	VMOVSD 48(R15), X2

#define OFFSETS8 \
	VMOVUPD 0(R15), Y0 \
	VMOVUPD 32(R15), Y1

#define ADD1 \
	VFMADD231SD 0(BX)(R10*1), X8, X0

#define ADD2 \
	VFMADD231PD 0(BX)(R10*1), X8, X0

#define ADD3 \
	VFMADD231PD 0(BX)(R10*1), X8, X0 \
	VFMADD231SD 16(BX)(R10*1), X8, X1

#define ADD4 \
	VFMADD231PD 0(BX)(R10*1), Y8, Y0

#define ADD5 \
	VFMADD231PD 0(BX)(R10*1), Y8, Y0 \
	VFMADD231SD 32(BX)(R10*1), X8, X1

#define ADD6 \
	VFMADD231PD 0(BX)(R10*1), Y8, Y0 \
	VFMADD231PD 32(BX)(R10*1), X8, X1

#define ADD7 \
	VFMADD231PD 0(BX)(R10*1), Y8, Y0 \
	VFMADD231PD 32(BX)(R10*1), X8, X1 \
	VFMADD231SD 48(BX)(R10*1), X8, X2

#define ADD8 \
	VFMADD231PD 0(BX)(R10*1), Y8, Y0 \
	VFMADD231PD 32(BX)(R10*1), Y8, Y1

#define PUT1 \
	VMOVSD X0, 0(DI)

#define PUT2 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI)

#define PUT3 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VMOVSD X1, 1024(DI)

#define PUT4 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VEXTRACTF128 $1, Y0, X3 \
	VMOVSD X3, 1024(DI) \
	VMOVHPD X3, 1536(DI)

#define PUT5 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VEXTRACTF128 $1, Y0, X3 \
	VMOVSD X3, 1024(DI) \
	VMOVHPD X3, 1536(DI) \
	VMOVSD X1, 2048(DI)

#define PUT6 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VEXTRACTF128 $1, Y0, X3 \
	VMOVSD X3, 1024(DI) \
	VMOVHPD X3, 1536(DI) \
	VMOVSD X1, 2048(DI) \
	VMOVHPD X1, 2560(DI)

#define PUT7 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VEXTRACTF128 $1, Y0, X3 \
	VMOVSD X3, 1024(DI) \
	VMOVHPD X3, 1536(DI) \
	VMOVSD X1, 2048(DI) \
	VMOVHPD X1, 2560(DI) \
	VMOVSD X2, 3072(DI)

#define PUT8 \
	VMOVSD X0, 0(DI) \
	VMOVHPD X0, 512(DI) \
	VEXTRACTF128 $1, Y0, X3 \
	VMOVSD X3, 1024(DI) \
	VMOVHPD X3, 1536(DI) \
	VMOVSD X1, 2048(DI) \
	VMOVHPD X1, 2560(DI) \
	VEXTRACTF128 $1, Y1, X3 \
	VMOVSD X3, 3072(DI) \
	VMOVHPD X3, 3584(DI)

#define GET1 \
	VMOVSD 0(DI), X0

#define GET2 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0

#define GET3 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X1

#define GET4 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X3 \
	VMOVHPD 1536(DI), X3, X3 \
	VINSERTF128 $1, X3, Y0, Y0

#define GET5 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X3 \
	VMOVHPD 1536(DI), X3, X3 \
	VINSERTF128 $1, X3, Y0, Y0 \
	VMOVSD 2048(DI), X1

#define GET6 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X3 \
	VMOVHPD 1536(DI), X3, X3 \
	VINSERTF128 $1, X3, Y0, Y0 \
	VMOVSD 2048(DI), X1 \
	VMOVHPD 2560(DI), X1, X1

#define GET7 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X3 \
	VMOVHPD 1536(DI), X3, X3 \
	VINSERTF128 $1, X3, Y0, Y0 \
	VMOVSD 2048(DI), X1 \
	VMOVHPD 2560(DI), X1, X1 \
	VMOVSD 3072(DI), X2

#define GET8 \
	VMOVSD 0(DI), X0 \
	VMOVHPD 512(DI), X0, X0 \
	VMOVSD 1024(DI), X3 \
	VMOVHPD 1536(DI), X3, X3 \
	VINSERTF128 $1, X3, Y0, Y0 \
	VMOVSD 2048(DI), X1 \
	VMOVHPD 2560(DI), X1, X1 \
	VMOVSD 3072(DI), X3 \
	VMOVHPD 3584(DI), X3, X3 \
	VINSERTF128 $1, X3, Y1, Y1

#define OUTER1 \
	VFMADD213SD 0(BX)(R10*1), X0, X8 \
	VMOVSD X8, 0(BX)(R10*1)

#define OUTER2 \
	VFMADD213PD 0(BX)(R10*1), X0, X8 \
	VMOVUPD X8, 0(BX)(R10*1)

#define OUTER3 \
	VMOVAPD Y8, Y4 \
	VFMADD213PD 0(BX)(R10*1), X0, X4 \
	VMOVUPD X4, 0(BX)(R10*1) \
	VFMADD213SD 16(BX)(R10*1), X1, X8 \
	VMOVSD X8, 16(BX)(R10*1)

#define OUTER4 \
	VFMADD213PD 0(BX)(R10*1), Y0, Y8 \
	VMOVUPD Y8, 0(BX)(R10*1)

#define OUTER5 \
	VMOVAPD Y8, Y4 \
	VFMADD213PD 0(BX)(R10*1), Y0, Y4 \
	VMOVUPD Y4, 0(BX)(R10*1) \
	VFMADD213SD 32(BX)(R10*1), X1, X8 \
	VMOVSD X8, 32(BX)(R10*1)

#define OUTER6 \
	VMOVAPD Y8, Y4 \
	VFMADD213PD 0(BX)(R10*1), Y0, Y4 \
	VMOVUPD Y4, 0(BX)(R10*1) \
	VFMADD213PD 32(BX)(R10*1), X1, X8 \
	VMOVUPD X8, 32(BX)(R10*1)

#define OUTER7 \
	VMOVAPD Y8, Y4 \
	VFMADD213PD 0(BX)(R10*1), Y0, Y4 \
	VMOVUPD Y4, 0(BX)(R10*1) \
	VMOVAPD Y8, Y5 \
	VFMADD213PD 32(BX)(R10*1), X1, X5 \
	VMOVUPD X5, 32(BX)(R10*1) \
	VFMADD213SD 48(BX)(R10*1), X2, X8 \
	VMOVSD X8, 48(BX)(R10*1)

#define OUTER8 \
	VMOVAPD Y8, Y4 \
	VFMADD213PD 0(BX)(R10*1), Y0, Y4 \
	VMOVUPD Y4, 0(BX)(R10*1) \
	VFMADD213PD 32(BX)(R10*1), Y1, Y8 \
	VMOVUPD Y8, 32(BX)(R10*1)

// PRODUCT computes a block of rows in so many columns.
#define PRODUCT(OFFSETS, ADD, PUT, row, loop, put) \
row: \
	MOVL (SI), R11   \
	MOVL 4(SI), AX   \
	OFFSETS          \
	CMPQ R11, AX     \
	JGE  put         \
loop: \
	ENTRY            \
	ADD              \
	NEXT(loop)       \
put: \
	PUT              \
	ADDQ $8, DI      \
	ADDQ $8, SI      \
	DECQ DX          \
	JNZ  row         \
	JMP  done

// func scoreEntriesAVX2(dst *float64, spans *Span, rows int, a *float32, index *uint32, m *float64, limit, n, width int, offsets *float64) bool
//
// computes width columns of ScoreEntries, 1 to 8. rows is not 0.
TEXT ·scoreEntriesAVX2(SB), NOSPLIT, $0-81
	BEGIN
	MOVQ dst+0(FP), DI
	MOVQ m+40(FP), BX
	MOVQ offsets+72(FP), R15
	CMPQ CX, $5
	JEQ  row5
	CMPQ CX, $4
	JEQ  row4
	CMPQ CX, $6
	JEQ  row6
	CMPQ CX, $3
	JEQ  row3
	CMPQ CX, $7
	JEQ  row7
	CMPQ CX, $2
	JEQ  row2
	CMPQ CX, $8
	JEQ  row8

	PRODUCT(OFFSETS1, ADD1, PUT1, row1, loop1, put1)
	PRODUCT(OFFSETS2, ADD2, PUT2, row2, loop2, put2)
	PRODUCT(OFFSETS3, ADD3, PUT3, row3, loop3, put3)
	PRODUCT(OFFSETS4, ADD4, PUT4, row4, loop4, put4)
	PRODUCT(OFFSETS5, ADD5, PUT5, row5, loop5, put5)
	PRODUCT(OFFSETS6, ADD6, PUT6, row6, loop6, put6)
	PRODUCT(OFFSETS7, ADD7, PUT7, row7, loop7, put7)
	PRODUCT(OFFSETS8, ADD8, PUT8, row8, loop8, put8)

done:
	VZEROUPPER
	MOVB $1, ret+80(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+80(FP)
	RET

// OUTERS adds the outer products of a block of rows in so many columns.
#define OUTERS(GET, OUTER, row, loop, next) \
row: \
	MOVL (SI), R11   \
	MOVL 4(SI), AX   \
	CMPQ R11, AX     \
	JGE  next        \
	GET              \
loop: \
	ENTRY            \
	OUTER            \
	NEXT(loop)       \
next: \
	ADDQ $8, DI      \
	ADDQ $8, SI      \
	DECQ DX          \
	JNZ  row         \
	JMP  done

// func addEntryOutersAVX2(m *float64, spans *Span, rows int, a *float32, index *uint32, p *float64, limit, n, width int) bool
//
// adds to width columns, 1 to 8. rows is not 0. Parts of a vector are stored without masks, which some processors store slowly.
TEXT ·addEntryOutersAVX2(SB), NOSPLIT, $0-73
	BEGIN
	MOVQ m+0(FP), BX
	MOVQ p+40(FP), DI
	CMPQ CX, $5
	JEQ  row5
	CMPQ CX, $4
	JEQ  row4
	CMPQ CX, $6
	JEQ  row6
	CMPQ CX, $3
	JEQ  row3
	CMPQ CX, $7
	JEQ  row7
	CMPQ CX, $2
	JEQ  row2
	CMPQ CX, $8
	JEQ  row8

	OUTERS(GET1, OUTER1, row1, loop1, next1)
	OUTERS(GET2, OUTER2, row2, loop2, next2)
	OUTERS(GET3, OUTER3, row3, loop3, next3)
	OUTERS(GET4, OUTER4, row4, loop4, next4)
	OUTERS(GET5, OUTER5, row5, loop5, next5)
	OUTERS(GET6, OUTER6, row6, loop6, next6)
	OUTERS(GET7, OUTER7, row7, loop7, next7)
	OUTERS(GET8, OUTER8, row8, loop8, next8)

done:
	VZEROUPPER
	MOVB $1, ret+72(FP)
	RET

outside:
	VZEROUPPER
	MOVB $0, ret+72(FP)
	RET
