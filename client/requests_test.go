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
	"github.com/coppice-ldl/coppice/protocol"
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
		if err == nil && (!bytes.Equal(got.Bytes(), whole) || h.Index != 5 ||
			last != BackupProgress{Blobs: 1, OfBlobs: 1, Bytes: 6, OfBytes: 6}) {
			t.Errorf("%s: %d bytes, %+v, %+v", name, got.Len(), h, last)
		}
		c.Close()
		s.Close()
	}
}

// A coordinator is removed only if the list of members says so, whatever a "not found" is
// about.
func TestRemovedMeansNotInTheList(t *testing.T) {
	for name, test := range map[string]struct {
		stays  bool // in the list
		status int
		says   string
	}{
		"removed":                {false, http.StatusOK, ""},
		"the answer was lost":    {false, http.StatusNotFound, ""},
		"nothing has that route": {true, http.StatusNotFound, "nothing at"},
		"removed, and it stays":  {true, http.StatusOK, "is still listed as a member"},
	} {
		deleted := false
		revoked := []protocol.Revocation{{Serial: "1", Identity: "coppice://test/coordinator/c/d"}} // an earlier one
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			list := protocol.Members{Members: []protocol.Member{{MemberEntry: protocol.MemberEntry{ID: "a"}}}}
			if r.URL.Path == "/v1/revocations" {
				answer(w, http.StatusOK, revoked)
				return
			}
			if test.stays || !deleted {
				list.Members = append(list.Members, protocol.Member{MemberEntry: protocol.MemberEntry{ID: "c/d"}})
			}
			if r.Method == http.MethodDelete {
				if r.URL.EscapedPath() != "/v1/members/c%2Fd" {
					t.Errorf("%s: it asks for %s", name, r.URL.EscapedPath())
				}
				deleted = true
				revoked = append(revoked, protocol.Revocation{Serial: "2", Identity: "coppice://test/coordinator/c/d"},
					protocol.Revocation{Serial: "3", Identity: "coppice://test/user/d"})
				list.Revoked = revoked[1:2]
				if list.Members = list.Members[:1]; test.stays {
					list.Members = append(list.Members, protocol.Member{MemberEntry: protocol.MemberEntry{ID: "c/d"}})
				}
				if test.status != http.StatusOK {
					answer(w, test.status, protocol.Problem{Error: "there is nothing at DELETE"})
					return
				}
			}
			answer(w, http.StatusOK, list)
		})
		m, err := connect(t, s.URL).Members().Remove(t.Context(), "c/d")
		if test.says == "" && (err != nil || has(m, "c/d")) || test.says != "" &&
			(err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if test.says == "" && (len(m.Revoked) != 1 || m.Revoked[0].Serial != "2") {
			t.Errorf("%s: revoked %+v, want 2", name, m.Revoked)
		}
	}
}

// What is not found is deleted, or trusted, only if another look says so.
func TestNotFoundIsLookedAtAgain(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			answer(w, http.StatusNotFound, protocol.Problem{Error: "there is nothing here"})
		case r.URL.Path == "/v1/cluster":
			answer(w, http.StatusOK, protocol.Cluster{Quarantined: []protocol.Quarantined{{Worker: "w1"}}})
		default:
			answer(w, http.StatusOK, protocol.Dataset{Name: "set"})
		}
	})
	c := connect(t, s.URL)
	if err := c.Datasets().Delete(t.Context(), "set"); !IsNotFound(err) {
		t.Errorf("a dataset that stays: %v", err)
	}
	if err := c.Trust(t.Context(), "w1"); !IsNotFound(err) {
		t.Errorf("a worker that stays distrusted: %v", err)
	}
}
