package ldlboost

import (
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
)

// TestLastBin: no memory behind the sums of the last bin is read or written: a page that nobody may read follows them.
func TestLastBin(t *testing.T) {
	page := syscall.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(memory) }()
	if err := syscall.Mprotect(memory[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for width := 1; width < 48; width++ {
		stride, bins := (width+7)/8*vectorWords, 3
		sums, words := num.Int32s(memory[page-4*bins*width:page]), make([]int64, bins*stride)
		for i := range bins {
			words[i*stride] = 1
		}
		clear(sums)
		if unpackNarrow(sums, words, width, stride); sums[2*width] != 1 {
			t.Fatalf("width %d: sums %v", width, sums)
		}
		widen(make([]float64, len(sums)), sums)
	}
}
