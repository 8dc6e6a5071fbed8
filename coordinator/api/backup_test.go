package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// during calls f at the first byte of an answer.
type during struct {
	*httptest.ResponseRecorder
	f func()
}

func (d *during) Write(b []byte) (int, error) {
	if d.f != nil {
		d.f()
		d.f = nil
	}
	return d.ResponseRecorder.Write(b)
}

// TestBackupWhileThingsGo checks that a backup is the state at one index: it has what is
// deleted meanwhile.
func TestBackupWhileThingsGo(t *testing.T) {
	a := newSite(t)
	m, shards := imported(t, 400)
	for i, b := range shards {
		a.get(http.MethodPut, "/v1/blobs/"+m.Shards[i].Digest, b, nil)
	}
	a.get(http.MethodPost, "/v1/datasets", protocol.DatasetPut{Name: "art", Manifest: m}, nil)
	folder := a.cfg.Blobs.Folder
	var index uint64 // of the record of the request
	w := &during{httptest.NewRecorder(), func() {
		index = a.cfg.Store.State().Index()
		a.get(http.MethodDelete, "/v1/datasets/art", nil, nil)
		for _, shard := range m.Shards {
			if err := folder.Delete(shard.Digest); !errors.Is(err, blobs.ErrHeld) {
				t.Errorf("a blob of a backup on its way: %v", err)
			}
		}
	}}
	inClear(a.cfg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/backup", nil))
	r, err := archive.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	record, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Decode(record)
	if err != nil || s.Index() != index || s.Dataset("art") == nil || r.Header.Index != index {
		t.Fatalf("the state is of %d, the backup began at %d: %v", s.Index(), index, err)
	}
	refs := s.References()
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(record)
		if err != nil || blobs.Sum(b) != record.Digest || !refs.Has(record.Digest) {
			t.Errorf("blob %s: %v", record.Digest, err)
		}
		d, _ := digests.Parse(record.Digest)
		delete(refs, d)
	}
	if len(refs) > 0 {
		t.Errorf("%d blobs lack", len(refs))
	}
	for _, shard := range m.Shards {
		if err := folder.Delete(shard.Digest); err != nil {
			t.Errorf("after the backup: %v", err)
		}
	}
}

// TestBackupLacksABlob checks that there is no backup if no coordinator has a blob. The
// error names the blob, even if the loss shows on the way.
func TestBackupLacksABlob(t *testing.T) {
	a := newSite(t)
	m, shards := imported(t, 400)
	for i, b := range shards {
		a.get(http.MethodPut, "/v1/blobs/"+m.Shards[i].Digest, b, nil)
	}
	a.get(http.MethodPost, "/v1/datasets", protocol.DatasetPut{Name: "art", Manifest: m}, nil)
	lost := m.Shards[2].Digest
	if err := a.cfg.Blobs.Folder.Delete(lost); err != nil {
		t.Fatal(err)
	}
	a.refuse(http.StatusNotFound, http.MethodGet, "/v1/backup", nil, "blob "+lost)
	if _, err := a.cfg.Blobs.Folder.Put(shards[2]); err != nil {
		t.Fatal(err)
	}
	b := &backup{state: a.cfg.Store.State(), blobs: a.cfg.Blobs}
	if err := b.prepare(testkit.Context(t), b.state.References()); err != nil {
		t.Fatal(err)
	}
	path, err := a.cfg.Blobs.Folder.Path(lost)
	if err != nil {
		t.Fatal(err)
	}
	worse := bytes.Clone(shards[2])
	worse[9] ^= 1
	if err := os.WriteFile(path, worse, 0o644); err != nil { // a bit that flips after it was found right
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := b.write(testkit.Context(t), &w, "c"); err == nil {
		t.Error("a backup without a blob is whole")
	}
	if _, err := archive.Verify(&w, nil); !errors.Is(err, archive.ErrBroken) || !strings.Contains(err.Error(), lost) {
		t.Errorf("its reader learns: %v", err)
	}
}
