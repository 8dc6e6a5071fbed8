//go:build !purego

#include "textflag.h"

// The parts of an entry: see columns.go.
DATA rowBits<>+0(SB)/4, $0x3fffffff
GLOBL rowBits<>(SB), RODATA|NOPTR, $4
DATA positiveBit<>+0(SB)/4, $0x40000000
GLOBL positiveBit<>(SB), RODATA|NOPTR, $4
DATA newBit<>+0(SB)/4, $0x80000000
GLOBL newBit<>(SB), RODATA|NOPTR, $4

// Shifts that bring bit i of a set of lanes to the top of lane i.
DATA toTop<>+0(SB)/4, $31
DATA toTop<>+4(SB)/4, $30
DATA toTop<>+8(SB)/4, $29
DATA toTop<>+12(SB)/4, $28
DATA toTop<>+16(SB)/4, $27
DATA toTop<>+20(SB)/4, $26
DATA toTop<>+24(SB)/4, $25
DATA toTop<>+28(SB)/4, $24
GLOBL toTop<>(SB), RODATA|NOPTR, $32

// The bits of a row's number that tell its place in a word of ranks.
DATA inWord<>+0(SB)/4, $31
GLOBL inWord<>(SB), RODATA|NOPTR, $4

// What counts bits: half bytes, how many bits each has, and ones.
DATA halfBytes<>+0(SB)/4, $0x0f0f0f0f
GLOBL halfBytes<>(SB), RODATA|NOPTR, $4
DATA bitsOfHalf<>+0(SB)/8, $0x0302020102010100
DATA bitsOfHalf<>+8(SB)/8, $0x0403030203020201
GLOBL bitsOfHalf<>(SB), RODATA|NOPTR, $16
DATA oneBytes<>+0(SB)/8, $0x0101010101010101
DATA oneBytes<>+8(SB)/8, $0x0101010101010101
DATA oneBytes<>+16(SB)/8, $0x0101010101010101
DATA oneBytes<>+24(SB)/8, $0x0101010101010101
GLOBL oneBytes<>(SB), RODATA|NOPTR, $32
DATA oneWords<>+0(SB)/8, $0x0001000100010001
DATA oneWords<>+8(SB)/8, $0x0001000100010001
DATA oneWords<>+16(SB)/8, $0x0001000100010001
DATA oneWords<>+24(SB)/8, $0x0001000100010001
GLOBL oneWords<>(SB), RODATA|NOPTR, $32

// func scanBinaryAsm(entries *uint32, n int, packed *uint64, whole, first, second *int64, passed uint64, best int64) (at int, least int64, after uint64, tried int)
TEXT ·scanBinaryAsm(SB), NOSPLIT, $0-96
	MOVQ entries+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ packed+16(FP), DI
	MOVQ whole+24(FP), R8
	MOVQ first+32(FP), R9
	MOVQ second+40(FP), R10
	MOVQ passed+48(FP), AX
	MOVQ best+56(FP), DX
	LEAQ (SI)(CX*4), SI
	NEGQ CX                 // entries are counted up to 0
	MOVQ $-1, R11           // at, counted from the first entry
	XORL R12, R12           // tried

loop:
	MOVL (SI)(CX*4), BX
	MOVL AX, R13
	MOVQ AX, R15
	SHRQ $32, R15
	LEAQ (R13)(R15*1), R14
	MOVQ (R8)(R14*8), R14
	SUBQ (R9)(R13*8), R14
	SUBQ (R10)(R15*8), R14
	MOVL BX, R13
	SHRL $31, R13
	ADDQ R13, R12
	CMPQ R14, DX
	JLT  less

next:
	ANDL $0x3fffffff, BX
	ADDQ (DI)(BX*8), AX
	INCQ CX
	JNZ  loop

	MOVQ R11, at+64(FP)
	MOVQ DX, least+72(FP)
	MOVQ AX, after+80(FP)
	MOVQ R12, tried+88(FP)
	RET

less:
	TESTL R13, R13
	JZ    next
	MOVQ  R14, DX
	MOVQ  n+8(FP), R11
	ADDQ  CX, R11
	JMP   next

// How many entries ahead rows are fetched.
#define FAR 24

// NARROW tries the threshold before an entry of scanNarrowAsm.
#define NARROW(less) \
	MOVL (SI)(CX*4), BX;         \
	MOVL AX, R13;                \
	MOVQ AX, R15;                \
	SHRQ $32, R15;               \
	LEAQ (R13)(R15*1), R14;      \
	MOVQ (R8)(R14*8), R14;       \
	SUBQ (R9)(R13*8), R14;       \
	SUBQ (R10)(R15*8), R14;      \
	MOVL BX, R13;                \
	SHRL $31, R13;               \
	ADDQ R13, R12;               \
	CMPQ R14, DX;                \
	JLT  less

// PASS moves the entry to the left.
#define PASS \
	ANDL    $0x3fffffff, BX;     \
	MOVBLZX (DI)(BX*1), BX;      \
	ADDQ    (R11)(BX*8), AX;     \
	INCQ    CX

// func scanNarrowAsm(entries *uint32, n int, narrow *uint8, unpacked *[256]uint64, whole, first, second *int64, passed uint64, best int64) (at int, least int64, after uint64, tried int)
TEXT ·scanNarrowAsm(SB), NOSPLIT, $0-104
	MOVQ entries+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ narrow+16(FP), DI
	MOVQ unpacked+24(FP), R11
	MOVQ whole+32(FP), R8
	MOVQ first+40(FP), R9
	MOVQ second+48(FP), R10
	MOVQ passed+56(FP), AX
	MOVQ best+64(FP), DX
	LEAQ (SI)(CX*4), SI
	NEGQ CX                 // entries are counted up to 0
	MOVQ $-1, at+72(FP)     // counted from the first entry
	XORL R12, R12           // tried
	CMPQ CX, $-FAR
	JGE  loop

	// While there are many entries, the row of one far ahead is fetched into the cache.
far:
	MOVL        (4*FAR)(SI)(CX*4), BX
	ANDL        $0x3fffffff, BX
	PREFETCHT0  (DI)(BX*1)
	NARROW(farLess)

farNext:
	PASS
	CMPQ CX, $-FAR
	JLT  far

loop:
	NARROW(less)

next:
	PASS
	JNZ loop

	MOVQ DX, least+80(FP)
	MOVQ AX, after+88(FP)
	MOVQ R12, tried+96(FP)
	RET

farLess:
	TESTL R13, R13
	JZ    farNext
	MOVQ  R14, DX
	MOVQ  n+8(FP), R13
	ADDQ  CX, R13
	MOVQ  R13, at+72(FP)
	JMP   farNext

less:
	TESTL R13, R13
	JZ    next
	MOVQ  R14, DX
	MOVQ  n+8(FP), R13
	ADDQ  CX, R13
	MOVQ  R13, at+72(FP)
	JMP   next

// FLAGS makes the flags of a vector's entries of which the lanes of keep go one
// way: an entry is new where any entry is since the last one kept. As a sum: the
// lanes between are ones, which carry a new value up to the next lane kept, or out of
// the vector. sum = (new & not) + not + pending.
#define FLAGS(new, not, pending, sum) \
	MOVL new, sum;     \
	ANDL not, sum;     \
	ADDL not, sum;     \
	ADDL pending, sum; \
	MOVL sum, pending; \
	SHRL $8, pending

// MARK writes the lanes of set to the top bits of the entries in Y0.
#define MARK(set) \
	VMOVD        set, X3;    \
	VPBROADCASTD X3, Y3;     \
	VPSLLVD      Y12, Y3, Y3; \
	VPAND        Y13, Y3, Y3; \
	VPANDN       Y0, Y13, Y0; \
	VPOR         Y3, Y0, Y0

// PACK moves the lanes of a set in Y0 to the front and stores all eight.
#define PACK(set, order, to) \
	VPMOVZXBD (order)(set*8), Y4; \
	VPERMD    Y0, Y4, Y5;         \
	VMOVDQU   Y5, (to)

// func partitionAVX2(entries *uint32, n int, spare *uint32, side *uint8, order *[256]uint64) (left int, newLeft, newRight uint32)
TEXT ·partitionAVX2(SB), NOSPLIT, $0-56
	MOVQ         entries+0(FP), SI
	MOVQ         n+8(FP), R12
	MOVQ         spare+16(FP), R13
	MOVQ         side+24(FP), DX
	MOVQ         order+32(FP), R15
	MOVQ         SI, DI
	LEAQ         (SI)(R12*4), R12
	XORL         R10, R10
	XORL         R11, R11
	VPBROADCASTD rowBits<>(SB), Y14
	VPBROADCASTD newBit<>(SB), Y13
	VMOVDQU      toTop<>(SB), Y12

loop:
	VMOVDQU    (SI), Y0
	VPAND      Y14, Y0, Y1
	VPCMPEQD   Y7, Y7, Y7
	VPXOR      Y2, Y2, Y2
	VPGATHERDD Y7, (DX)(Y1*1), Y2
	VPSLLD     $31, Y2, Y2
	VMOVMSKPS  Y2, AX            // lanes that go right
	VMOVMSKPS  Y0, BX            // lanes of a new value
	MOVL       AX, CX
	XORL       $0xff, CX         // lanes that go left
	FLAGS(BX, AX, R10, R8)
	FLAGS(BX, CX, R11, R9)
	ANDL       CX, R8
	ANDL       AX, R9
	ORL        R8, R9
	ORL        BX, R9
	MARK(R9)
	PACK(CX, R15, DI)
	PACK(AX, R15, R13)
	POPCNTL    CX, CX
	POPCNTL    AX, AX
	LEAQ       (DI)(CX*4), DI
	LEAQ       (R13)(AX*4), R13
	ADDQ       $32, SI
	CMPQ       SI, R12
	JLT        loop

	SUBQ entries+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, left+40(FP)
	MOVL R10, newLeft+48(FP)
	MOVL R11, newRight+52(FP)
	VZEROUPPER
	RET

// func partitionRankedAVX2(entries *uint32, n int, spare *uint32, ranks *uint64, order *[256]uint64) (left int, newLeft, newRight uint32)
TEXT ·partitionRankedAVX2(SB), NOSPLIT, $0-56
	MOVQ           entries+0(FP), SI
	MOVQ           n+8(FP), R12
	MOVQ           spare+16(FP), R13
	MOVQ           ranks+24(FP), DX
	MOVQ           order+32(FP), R15
	MOVQ           SI, DI
	LEAQ           (SI)(R12*4), R12
	XORL           R10, R10
	XORL           R11, R11
	VPBROADCASTD   rowBits<>(SB), Y14
	VPBROADCASTD   newBit<>(SB), Y13
	VMOVDQU        toTop<>(SB), Y12
	VPBROADCASTD   inWord<>(SB), Y11
	VPBROADCASTD   halfBytes<>(SB), Y10
	VBROADCASTI128 bitsOfHalf<>(SB), Y15

loop:
	VMOVDQU    (SI), Y0
	VPAND      Y14, Y0, Y1       // rows
	VPSRLD     $5, Y1, Y2
	VPCMPEQD   Y7, Y7, Y7
	VPXOR      Y8, Y8, Y8
	VPGATHERDD Y7, (DX)(Y2*8), Y8
	VPCMPEQD   Y7, Y7, Y7
	VPXOR      Y9, Y9, Y9
	VPGATHERDD Y7, 4(DX)(Y2*8), Y9
	VPAND      Y11, Y1, Y3
	VPSRLVD    Y3, Y8, Y6
	VPSLLD     $31, Y6, Y6       // rows that go right
	VPCMPEQD   Y7, Y7, Y7
	VPSLLVD    Y3, Y7, Y4
	VPANDN     Y8, Y4, Y4        // of the word, those before the row
	VPAND      Y10, Y4, Y5
	VPSRLD     $4, Y4, Y4
	VPAND      Y10, Y4, Y4
	VPSHUFB    Y5, Y15, Y5
	VPSHUFB    Y4, Y15, Y4
	VPADDB     Y4, Y5, Y5
	VPMADDUBSW oneBytes<>(SB), Y5, Y5
	VPMADDWD   oneWords<>(SB), Y5, Y5
	VPADDD     Y9, Y5, Y5        // numbers on the right
	VPSUBD     Y5, Y1, Y4        // numbers on the left
	VBLENDVPS  Y6, Y5, Y4, Y4
	VMOVMSKPS  Y6, AX            // lanes that go right
	VMOVMSKPS  Y0, BX            // lanes of a new value
	VPANDN     Y0, Y14, Y0
	VPOR       Y4, Y0, Y0
	MOVL       AX, CX
	XORL       $0xff, CX         // lanes that go left
	FLAGS(BX, AX, R10, R8)
	FLAGS(BX, CX, R11, R9)
	ANDL       CX, R8
	ANDL       AX, R9
	ORL        R8, R9
	ORL        BX, R9
	MARK(R9)
	PACK(CX, R15, DI)
	PACK(AX, R15, R13)
	POPCNTL    CX, CX
	POPCNTL    AX, AX
	LEAQ       (DI)(CX*4), DI
	LEAQ       (R13)(AX*4), R13
	ADDQ       $32, SI
	CMPQ       SI, R12
	JLT        loop

	SUBQ entries+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, left+40(FP)
	MOVL R10, newLeft+48(FP)
	MOVL R11, newRight+52(FP)
	VZEROUPPER
	RET

// func filterSideAVX2(entries *uint32, n int, side *uint8, flip uint32, order *[256]uint64) (kept int, isNew uint32)
TEXT ·filterSideAVX2(SB), NOSPLIT, $0-52
	MOVQ         entries+0(FP), SI
	MOVQ         n+8(FP), R12
	MOVQ         side+16(FP), DX
	MOVL         flip+24(FP), R13
	MOVQ         order+32(FP), R15
	MOVQ         SI, DI
	LEAQ         (SI)(R12*4), R12
	XORL         R10, R10
	VPBROADCASTD rowBits<>(SB), Y14
	VPBROADCASTD newBit<>(SB), Y13
	VMOVDQU      toTop<>(SB), Y12

loop:
	VMOVDQU    (SI), Y0
	VPAND      Y14, Y0, Y1
	VPCMPEQD   Y7, Y7, Y7
	VPXOR      Y2, Y2, Y2
	VPGATHERDD Y7, (DX)(Y1*1), Y2
	VPSLLD     $31, Y2, Y2
	VMOVMSKPS  Y2, CX
	VMOVMSKPS  Y0, BX
	XORL       R13, CX           // lanes that are kept
	MOVL       CX, AX
	XORL       $0xff, AX
	FLAGS(BX, AX, R10, R8)
	ORL        BX, R8
	MARK(R8)
	PACK(CX, R15, DI)
	POPCNTL    CX, CX
	LEAQ       (DI)(CX*4), DI
	ADDQ       $32, SI
	CMPQ       SI, R12
	JLT        loop

	SUBQ entries+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, kept+40(FP)
	MOVL R10, isNew+48(FP)
	VZEROUPPER
	RET

// func selectDrawnAVX2(dst, column *uint32, n int, local *uint32, order *[256]uint64) (kept int, isNew uint32)
TEXT ·selectDrawnAVX2(SB), NOSPLIT, $0-52
	MOVQ         dst+0(FP), DI
	MOVQ         column+8(FP), SI
	MOVQ         n+16(FP), R12
	MOVQ         local+24(FP), DX
	MOVQ         order+32(FP), R15
	LEAQ         (SI)(R12*4), R12
	XORL         R10, R10
	VPBROADCASTD rowBits<>(SB), Y14
	VPBROADCASTD newBit<>(SB), Y13
	VPBROADCASTD positiveBit<>(SB), Y11
	VPCMPEQD     Y10, Y10, Y10
	VMOVDQU      toTop<>(SB), Y12

loop:
	VMOVDQU    (SI), Y0
	VPAND      Y14, Y0, Y1
	VPCMPEQD   Y7, Y7, Y7
	VPXOR      Y2, Y2, Y2
	VPGATHERDD Y7, (DX)(Y1*4), Y2
	VPCMPEQD   Y10, Y2, Y6
	VMOVMSKPS  Y6, AX            // lanes of rows that were not drawn
	VMOVMSKPS  Y0, BX
	MOVL       AX, CX
	XORL       $0xff, CX
	VPAND      Y11, Y0, Y0
	VPOR       Y2, Y0, Y0
	FLAGS(BX, AX, R10, R8)
	ORL        BX, R8
	MARK(R8)
	PACK(CX, R15, DI)
	POPCNTL    CX, CX
	LEAQ       (DI)(CX*4), DI
	ADDQ       $32, SI
	CMPQ       SI, R12
	JLT        loop

	SUBQ dst+0(FP), DI
	SHRQ $2, DI
	MOVQ DI, kept+40(FP)
	MOVL R10, isNew+48(FP)
	VZEROUPPER
	RET
