//go:build !purego

package num

import "golang.org/x/sys/cpu"

// Accelerated is true if kernels run as vector instructions here; the bits are the same. Only tests change it.
var Accelerated = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

// wide tells whether the products take vectors of 64 bytes, which gain more than a sixth.
var wide = Accelerated && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
