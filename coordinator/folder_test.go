package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// A coordinator starts in a folder of its own, or in an empty one, and leaves every
// other as it is.
func TestFolderOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		files []string
		lacks string // what the refusal names; empty: accepted
	}{
		"empty":                    {nil, ""},
		"a new disk":               {[]string{"lost+found"}, ""},
		"its own":                  {[]string{"CLUSTER", "hog"}, ""},
		"emptied but for blobs":    {[]string{"blobs"}, ""},
		"a first start that ended": {[]string{"MEMBERS.tmp"}, ""},
		"a worker's":               {[]string{"FORMAT", "ID", "LOCK"}, "coppice worker"},
		"a user's":                 {[]string{"lost+found", "thesis.tex"}, "thesis.tex"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("coppice worker 2\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkFolder(dir)
			if test.lacks == "" && err != nil {
				t.Fatal(err)
			}
			if test.lacks != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.lacks)) {
				t.Fatalf("%v; it should name %q", err, test.lacks)
			}
			if _, err := (Config{ID: "a", Dir: dir}).prepared(false); (err != nil) != (test.lacks != "") {
				t.Fatalf("a coordinator there: %v", err)
			}
		})
	}
	if err := checkFolder(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Error(err)
	}
}

// TestClusterIDIsKept: the cluster's name survives damage to one of its files, and is
// not guessed if both are damaged.
func TestClusterIDIsKept(t *testing.T) {
	cut := func(b []byte) []byte { return b[:5] }
	flip := func(b []byte) []byte { b[2] ^= 1; return b }
	empty := func([]byte) []byte { return nil }
	for _, test := range []struct {
		name         string
		first, other func([]byte) []byte
		kept         bool
	}{
		{"whole", nil, nil, true},
		{"cut short", cut, nil, true},
		{"empty", empty, nil, true},
		{"a bit", flip, nil, true},
		{"a bit of the copy", nil, flip, true},
		{"both", cut, flip, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
			if id, err := clusterID(dir, log); err != nil || id != "" {
				t.Fatalf("a new folder is of cluster %q: %v", id, err)
			}
			id := store.NewID()
			if err := keepClusterID(dir, id); err != nil {
				t.Fatal(err)
			}
			for name, change := range map[string]func([]byte) []byte{clusterName: test.first, clusterCopy: test.other} {
				if change == nil {
					continue
				}
				path := filepath.Join(dir, name)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, change(b), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			again, err := clusterID(dir, log)
			if !test.kept {
				if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Join(dir, clusterName)) {
					t.Errorf("%q, %v; want ErrCorrupt that names the file", again, err)
				}
				return
			}
			if err != nil || again != id {
				t.Fatalf("%q, %v; want %q", again, err, id)
			}
			if err := keepClusterID(dir, id); err != nil {
				t.Fatal(err)
			}
			if got, err := readClusterFile(filepath.Join(dir, clusterName)); err != nil || got != id {
				t.Errorf("the file was not mended: %q, %v", got, err)
			}
		})
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

func TestKeptMembers(t *testing.T) {
	dir := t.TempDir()
	k, damaged, err := readMembers(dir)
	if err != nil || damaged != nil || len(k.Members) > 0 || k.Used {
		t.Fatalf("of a new folder: %+v, %v, %v", k, damaged, err)
	}
	k = memberFile{Format: membersFormat, Members: []protocol.MemberEntry{entry("b", "x")},
		Given: map[string]string{"b": "x:1"}, External: "nats://y"}
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	again, damaged, err := readMembers(dir)
	if diff := cmp.Diff(k, again); err != nil || damaged != nil || diff != "" {
		t.Errorf("%v, %v: %s", damaged, err, diff)
	}
	for _, text := range []string{`{"format":1}`, `{"format":3}`} {
		if err := os.WriteFile(filepath.Join(dir, membersName), []byte(checksum(text)+"\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readMembers(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "MEMBERS")) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Whatever bit of MEMBERS flips, or whatever else is there in its place, the copy has the
// list. If both are damaged it is known that there was one.
func TestDamagedMembers(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	k := memberFile{Format: membersFormat, Members: []protocol.MemberEntry{entry("b", "x")},
		Given: map[string]string{"b": "x:1"}, External: "nats://y"}
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	file, second := filepath.Join(dir, membersName), filepath.Join(dir, membersCopy)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := [][]byte{nil, []byte("{"), good[:len(good)-1], make([]byte, maxMembers+1)}
	for bit := range 8 * len(good) {
		b := slices.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		spoilt = append(spoilt, b)
	}
	for i, b := range spoilt {
		if err := errors.Join(os.WriteFile(file, b, 0o600), os.WriteFile(second, good, 0o600)); err != nil {
			t.Fatal(err)
		}
		got, damaged, err := readMembers(dir)
		if diff := cmp.Diff(k, got); err != nil || !errors.Is(damaged, store.ErrCorrupt) ||
			!strings.Contains(damaged.Error(), file) || diff != "" {
			t.Fatalf("%d: %v, %v: %s", i, damaged, err, diff)
		}
		if err := os.WriteFile(second, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, damaged, err = readMembers(dir)
		if diff := cmp.Diff(memberFile{Format: membersFormat, Used: true}, got); err != nil ||
			!errors.Is(damaged, store.ErrCorrupt) || diff != "" {
			t.Fatalf("both, %d: %v, %v: %s", i, damaged, err, diff)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, good, 0o600); err != nil {
		t.Fatal(err)
	}
	got, damaged, err := readMembers(dir)
	if diff := cmp.Diff(k, got); err != nil || damaged != nil || diff != "" {
		t.Errorf("without the first: %v, %v: %s", damaged, err, diff)
	}
}

// FuzzClusterFiles: for any content of the two files of the cluster's name, the name is
// valid in subjects, or the error names the first file as corrupt.
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
	good := &memberFile{Format: membersFormat, Members: []protocol.MemberEntry{{ID: "a", HTTP: "h:1"}},
		Given: map[string]string{"a": "h:1"}}
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
			if !errors.Is(damaged, store.ErrCorrupt) || !strings.Contains(damaged.Error(), path) || !k.Used ||
				len(k.Members) > 0 {
				t.Fatalf("%+v of damaged files: %v", k, damaged)
			}
		}
		if err := k.write(dir); err != nil {
			t.Fatal(err)
		}
		if again, damaged, err := readMembers(dir); err != nil || damaged != nil || len(again.Members) != len(k.Members) ||
			len(again.Given) != len(k.Given) {
			t.Fatalf("%+v is read again as %+v, error %v, %v", k, again, err, damaged)
		}
	})
}
