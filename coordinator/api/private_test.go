package api

import (
	"encoding/binary"
	"testing"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// TestSentBlobs: what a caller has sent is known of this caller alone, at least the newest maxSent blobs and at most
// twice as many.
func TestSentBlobs(t *testing.T) {
	var s sentBlobs
	of := func(n int) (d digests.Digest) {
		binary.LittleEndian.PutUint64(d[:], uint64(n+1))
		return d
	}
	knows := func(caller string, n int) bool {
		set := digests.Set{of(n): {}}
		s.remove(caller, set)
		return len(set) == 0
	}
	const all = 3 * maxSent
	for n := range all {
		s.add("ana", of(n).String())
	}
	s.add("ana", "no digest")
	if !knows("ana", all-1) || !knows("ana", all-maxSent) || knows("ana", 0) || knows("eve", all-1) || knows("", all-1) {
		t.Errorf("newest %v, maxSent ago %v, first %v, of another %v", knows("ana", all-1), knows("ana", all-maxSent),
			knows("ana", 0), knows("eve", all-1))
	}
	if len(s.now)+len(s.before) > 2*maxSent {
		t.Errorf("%d blobs are known", len(s.now)+len(s.before))
	}
}
