package round

import "testing"

// TestCheckSaysWhatDiffers: the sizes that are there, and those that are expected.
func TestCheckSaysWhatDiffers(t *testing.T) {
	p := Partial{F64: make([]float64, 2), Width: 4}
	err := p.Check(Shape{F64: 3, Rows: 5, Width: 4})
	const want = "round: the partial result has 2 float64, 0 float32, 0 int32 and 0 rows of 4 values, want {F64:3 F32:0 " +
		"I32:0 Rows:5 Width:4}"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := p.Check(Shape{F64: 2, Rows: 5, Width: 4}); err != nil {
		t.Errorf("the shape that it has: %v", err)
	}
}

// TestResetGivesUpMemory: a partial does not keep a large list for float64 sums while its sums are int32.
func TestResetGivesUpMemory(t *testing.T) {
	var p Partial
	p.Reset(Shape{F64: 1 << 20})
	p.Reset(Shape{F64: 1, I32: 1 << 20})
	if len(p.F64) != 1 || cap(p.F64) > 8 || len(p.I32) != 1<<20 {
		t.Errorf("%d float64 in memory for %d, %d int32", len(p.F64), cap(p.F64), len(p.I32))
	}
	p.I32[7] = 1
	p.Reset(Shape{I32: 1 << 19})
	if len(p.I32) != 1<<19 || cap(p.I32) != 1<<20 || p.I32[7] != 0 {
		t.Errorf("%d int32 in memory for %d, number 7 is %d", len(p.I32), cap(p.I32), p.I32[7])
	}
}
