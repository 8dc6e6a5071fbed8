package dataset

import (
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

func TestParseShape(t *testing.T) {
	s, err := ParseShape("3x32x48")
	if err != nil || s != (Shape{3, 32, 48}) || s.Size() != 3*32*48 || s.String() != "3x32x48" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"", "8x8", "1x8x8x8", "0x8x8", "-1x8x8", "1x08x8", "1x8x8 ", "axbxc",
		"16777216x16777216x16777216", "2x4096x4096"} {
		if s, err := ParseShape(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("1x8x8")
	f.Add("16777216x1x1")
	f.Add("4294967296x4294967296x1")
	f.Fuzz(func(t *testing.T, text string) {
		allocs.AtMost(t, 64*len(text)+64<<10, "a shape", func() {
			s, err := ParseShape(text)
			if err == nil && (s.String() != text || s.Size() < 1 || s.Size() > MaxFeatures || s.check(s.Size()) != nil) {
				t.Errorf("%q is %+v of %d", text, s, s.Size())
			}
		})
	})
}
