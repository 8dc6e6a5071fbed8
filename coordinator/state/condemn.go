package state

import (
	"maps"

	"github.com/coppice-ldl/coppice/protocol"
)

// condemn marks those of the blobs that nothing references; one that was marked
// before keeps its mark.
func (s *State) condemn(e *protocol.CondemnEntry) (any, error) {
	for _, d := range e.Digests {
		if !isDigest(d) {
			return nil, invalid("%.80q is not a digest", d)
		}
	}
	refs := s.References()
	next := make(map[string]uint64, len(s.condemned)+len(e.Digests))
	maps.Copy(next, s.condemned)
	var marked []string
	for _, d := range e.Digests {
		if _, ok := next[d]; ok || refs.Has(d) {
			continue
		}
		next[d] = s.index
		marked = append(marked, d)
	}
	s.condemned = next
	s.trim()
	return marked, nil
}
