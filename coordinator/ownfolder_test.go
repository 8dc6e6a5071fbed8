package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// The end of a coordinator without its folder says what to do, by who has a copy.
func TestLostFolder(t *testing.T) {
	gone := fmt.Errorf("d/raft: %w", files.ErrGone)
	a, b := entry("a", "h:1"), entry("b", "h:2")
	a.HTTP, b.HTTP = "h:1", "h:2"
	for name, test := range map[string]struct {
		cfg     Config
		members []protocol.MemberEntry
		want    string
	}{
		"alone":                 {Config{Dir: "d"}, []protocol.MemberEntry{a}, "coppice restore FILE --dir d"},
		"one of several":        {Config{Dir: "d", Peers: []Peer{{}, {}, {}}}, []protocol.MemberEntry{a, b}, "with the same flags"},
		"one that joined":       {Config{Dir: "d", Peers: []Peer{{}}, Join: []string{"h:1"}}, []protocol.MemberEntry{a, b}, "with the same flags"},
		"one that began alone":  {Config{Dir: "d", Peers: []Peer{{}}}, []protocol.MemberEntry{a, b}, "--peers a=h:1,b=h:2"},
		"one that has no peers": {Config{Dir: "d"}, nil, "coppice restore FILE --dir d"},
	} {
		if err := test.cfg.lostFolder(gone, test.members); !errors.Is(err, files.ErrGone) || !strings.Contains(err.Error(), "d/raft") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", name, err, test.want)
		}
	}
	other := errors.New("other")
	if err := new(Config).lostFolder(other, nil); err != other {
		t.Errorf("%v", err)
	}
	if err := new(Config).lostFolder(nil, nil); err != nil {
		t.Errorf("%v", err)
	}
}

// A coordinator sees that a part of its folder is deleted.
func TestOwnFolder(t *testing.T) {
	dir := t.TempDir()
	folder, err := blobs.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "raft"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := holdFolder(dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.fault(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.watch(ctx); err != nil {
		t.Errorf("of a folder that is there: %v", err)
	}
	raft := filepath.Join(dir, "raft")
	if err := os.RemoveAll(raft); err != nil {
		t.Fatal(err)
	}
	if err := f.watch(t.Context()); !errors.Is(err, files.ErrGone) || !strings.Contains(err.Error(), raft) {
		t.Errorf("of a deleted folder: %v", err)
	}
	if err := f.fault(); !errors.Is(err, files.ErrGone) {
		t.Errorf("of a deleted folder: %v", err)
	}
}
