package ldlf

import "testing"

// TestSpareIsBounded: what is kept for the next leaf update is at most spareLimit, and a
// routing that is taken makes room for another.
func TestSpareIsBounded(t *testing.T) {
	var s spare
	large := func() *routing { return &routing{p: make([]float32, spareLimit/4/2), spare: &s} }
	for range 3 {
		r := large()
		r.Retain()
		r.Release()
	}
	if len(s.ready) != 2 || s.bytes != spareLimit {
		t.Fatalf("%d routings of %d bytes are kept", len(s.ready), s.bytes)
	}
	if r := s.get(); len(r.p) == 0 || s.bytes != spareLimit/2 {
		t.Errorf("%d bytes are kept once one is taken", s.bytes)
	}
	s.put(large())
	if s.bytes != spareLimit {
		t.Errorf("%d bytes are kept", s.bytes)
	}
}
