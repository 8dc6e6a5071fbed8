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
