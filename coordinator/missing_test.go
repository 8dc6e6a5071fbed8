package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// Blobs that are missing for some time are told. Until a coordinator has been whole each counts at once.
func TestShortageText(t *testing.T) {
	for _, test := range []struct {
		short replica.Shortage
		whole bool
		want  string
	}{
		{replica.Shortage{}, false, ""},
		{replica.Shortage{Count: 1, Oldest: missingGrace / 2}, true, ""},
		{replica.Shortage{Count: 1, Oldest: missingGrace / 2}, false, "1 blob is missing, for 0 s; they are fetched from the others"},
		{replica.Shortage{Count: 12, Oldest: 3*time.Second + 900*time.Millisecond}, true, "12 blobs are missing, for 3 s; they are fetched from the others"},
		{replica.Shortage{Count: 12, Lost: 12, Oldest: time.Minute}, true, "12 blobs are missing, for 60 s; no coordinator has what is missing"},
		{replica.Shortage{Count: 12, Lost: 2, Oldest: time.Minute}, true, "12 blobs are missing, for 60 s; they are fetched from the others, but no coordinator has 2 of them"},
		{replica.Shortage{Count: 12, Folder: errors.New("no such folder")}, true, "the folder of blobs cannot be read: no such folder"},
	} {
		if got := shortageText(&test.short, test.whole); got != test.want {
			t.Errorf("%+v, whole %v: %q, want %q", test.short, test.whole, got, test.want)
		}
	}
}

// What refers to lost blobs is named, with what helps.
func TestOwners(t *testing.T) {
	s := state.New()
	lost := make(digests.Set)
	for i, name := range []string{"one", "two", "three", "four", "five", "whole"} {
		shards := []dataset.ShardRef{{Digest: keyed(name + "a").String(), Rows: 2, Bytes: 8}, {Digest: keyed(name + "b").String(), Rows: 2, Bytes: 8}}
		m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 4, Features: 2, Labels: 2, Shards: shards}
		next, result := s.Apply(uint64(i+1), protocol.EncodeEntry(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: name, Manifest: m}))
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		s = next
		if name != "whole" {
			lost.Add(shards[0].Digest)
		}
		if name == "one" {
			lost.Add(shards[1].Digest)
		}
	}
	got := owners(s, lost)
	for _, part := range []string{"dataset one (2 blobs, such as ", "dataset three (blob " + keyed("threea").String()[:12] + "; import it again)", " and 1 more"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	if strings.Contains(got, "whole") {
		t.Errorf("%q names a dataset that is whole", got)
	}
}
