package coordinator

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

// FuzzClusterFiles: whatever the two files say that keep the cluster's name, the
// name is one that subjects can have, or the first file is named as corrupt.
func FuzzClusterFiles(f *testing.F) {
	f.Add([]byte("0123456789ab\n"), []byte{}, true)
	f.Add([]byte("a b\n"), []byte("0123456789ab\n00000000\n"), true)
	f.Add([]byte{}, []byte("x\n"), false)
	f.Add([]byte("x\n"+checksum("x")+"\n"), []byte("*.>\n"), true)
	dir := f.TempDir()
	lawful := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	f.Fuzz(func(t *testing.T, first, second []byte, both bool) {
		log := slog.New(slog.DiscardHandler)
		if err := os.WriteFile(filepath.Join(dir, clusterName), first, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, clusterCopy)); err != nil {
			t.Fatal(err)
		}
		if both {
			if err := os.WriteFile(filepath.Join(dir, clusterCopy), second, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		allocs.AtMost(t, 64*(len(first)+len(second))+64<<10, "a cluster's name", func() {
			id, err := clusterID(dir, log)
			if err != nil && (!errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), clusterName)) {
				t.Fatalf("error %v", err)
			}
			if err == nil && !lawful.MatchString(id) {
				t.Fatalf("the cluster is called %q", id)
			}
		})
	})
}

// FuzzMembersFile: the files of members are read as they were written, or refused by name, or
// are damaged: then it is known that there was a list.
func FuzzMembersFile(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, membersName)
	good := &memberFile{Format: membersFormat, Members: []protocol.MemberEntry{{ID: "a", HTTP: "h:1"}}, Given: map[string]string{"a": "h:1"}}
	if err := good.write(dir); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n")
	f.Add(text, true)
	f.Add(string(b), false)
	f.Add(`{"format":1}`, true)
	f.Add(`{"format":2,"members":[{},{},{}],"given":{"":""}}`, true)
	f.Fuzz(func(t *testing.T, text string, summed bool) {
		b := []byte(text)
		if summed {
			b = []byte(checksum(text) + "\n" + text)
		}
		for _, name := range []string{membersName, membersCopy} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var k memberFile
		var damaged, err error
		allocs.AtMost(t, 256*len(b)+64<<10, "the members", func() { k, damaged, err = readMembers(dir) })
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), path) {
				t.Fatalf("error %v does not name the file", err)
			}
			return
		case damaged != nil:
			if !errors.Is(damaged, store.ErrCorrupt) || !strings.Contains(damaged.Error(), path) || !k.Used || len(k.Members) > 0 {
				t.Fatalf("%+v of damaged files: %v", k, damaged)
			}
		}
		if err := k.write(dir); err != nil {
			t.Fatal(err)
		}
		if again, damaged, err := readMembers(dir); err != nil || damaged != nil || len(again.Members) != len(k.Members) || len(again.Given) != len(k.Given) {
			t.Fatalf("%+v is read again as %+v, error %v, %v", k, again, err, damaged)
		}
	})
}

// FuzzSelfAnswer: what another coordinator says of itself and its cluster to one
// that joins is taken or refused, in proportion to its size.
func FuzzSelfAnswer(f *testing.F) {
	var body atomic.Pointer[[]byte]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(*body.Load()) }))
	f.Cleanup(s.Close)
	f.Add([]byte(`{"id":"a","cluster":"c","protocol":2,"numerics":1,"heartbeat_ms":250,"coordinators":[{"id":"a","http":"h:1"}]}`))
	f.Add([]byte(`{"heartbeat_ms":9223372036854775807,"coordinators":[{},{},{}]}`))
	f.Add([]byte(`null`))
	c := &Config{ID: "b"}
	f.Fuzz(func(t *testing.T, b []byte) {
		body.Store(&b)
		allocs.AtMost(t, 256*len(b)+2<<20, "an answer", func() {
			j, err := askToJoin(t.Context(), s.Listener.Addr().String())
			if err == nil {
				c.mayJoin("h:1", j)
			}
		})
	})
}
