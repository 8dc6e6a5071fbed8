package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/internal/archive"
)

// aBackup is a backup of a state and a blob.
func aBackup(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Header{Cluster: "c", Index: 5, Blobs: 1, Bytes: 6})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		kind         archive.Kind
		digest, data string
	}{
		{archive.State, "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", "foo"},
		{archive.Blob, "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9", "bar"},
	} {
		if err := w.Record(r.kind, r.digest, 3, strings.NewReader(r.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A backup arrives whole, or is an error that says why it does not.
func TestBackup(t *testing.T) {
	whole := aBackup(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, test := range map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		want  error
	}{
		"whole":     {func(w http.ResponseWriter, _ *http.Request) { w.Write(whole) }, nil},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) { w.Write(whole[:len(whole)-40]) }, archive.ErrCorrupt},
		"damaged": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(bytes.Replace(whole, []byte("bar"), []byte("baz"), 1))
		}, archive.ErrCorrupt},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(whole[:len(whole)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, archive.ErrCorrupt},
		"interrupted": {func(w http.ResponseWriter, r *http.Request) {
			w.Write(whole[:len(whole)/2])
			w.(http.Flusher).Flush()
			cancel()
			<-r.Context().Done()
		}, context.Canceled},
	} {
		var calls atomic.Int32
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			test.serve(w, r)
		})
		c, err := New(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		within := context.Background()
		if name == "interrupted" {
			within = ctx
		}
		var got bytes.Buffer
		var last BackupProgress
		h, err := c.Backup(within, &got, func(p BackupProgress) { last = p })
		if !errors.Is(err, test.want) || calls.Load() != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls.Load())
		}
		if err == nil && (!bytes.Equal(got.Bytes(), whole) || h.Index != 5 || last != BackupProgress{1, 1, 6, 6}) {
			t.Errorf("%s: %d bytes, %+v, %+v", name, got.Len(), h, last)
		}
		c.Close()
		s.Close()
	}
}
