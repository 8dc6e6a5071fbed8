package api

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestListsOfGroups: a manifest comes in only with a list that gives each of its rows a group,
// and each group a row.
func TestListsOfGroups(t *testing.T) {
	s := newSite(t)
	m := *s.put("art", 4)
	for _, c := range []struct {
		groups []uint16
		wrong  string
	}{
		{[]uint16{0, 1, 1}, "6 bytes"},
		{[]uint16{0, 1, 2, 0}, "sample 2 is in group 2, but there are 2 groups"},
		{[]uint16{0, 0, 0, 0}, `no sample is in the group "b"`},
		{[]uint16{0, 1, 1, 0}, ""},
	} {
		b := dataset.EncodeFolds(c.groups)
		s.get("PUT", "/v1/blobs/"+blobs.Sum(b), b, nil)
		m.Groups = &dataset.Groups{Digest: blobs.Sum(b), Names: []string{"a", "b"}}
		entry := protocol.DatasetPutEntry{Name: "grouped", Manifest: &m}
		if c.wrong == "" {
			s.get("POST", "/v1/datasets", entry, nil)
		} else {
			s.refuse(400, "POST", "/v1/datasets", entry, c.wrong)
		}
	}
}
