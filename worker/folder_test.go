package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// A worker takes an empty folder, one that is a new disk, and one that a crash left
// unfinished, and no other.
func TestFolderOfOthers(t *testing.T) {
	for name, x := range map[string]struct {
		files []string
		want  error
	}{
		"an empty one":    {nil, nil},
		"a new disk":      {[]string{"lost+found/"}, nil},
		"an unfinished":   {[]string{"FORMAT.tmp", "lost+found/"}, nil},
		"a user's":        {[]string{"lost+found/", "thesis.tex"}, ErrFolder},
		"a coordinator's": {[]string{"CLUSTER", "raft/"}, ErrFolder},
	} {
		dir := t.TempDir()
		for _, file := range x.files {
			path := filepath.Join(dir, file)
			create := func() error { return os.WriteFile(path, nil, 0o644) }
			if strings.HasSuffix(file, "/") {
				create = func() error { return os.Mkdir(path, 0o755) }
			}
			if err := create(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // also once it is its own
			f, err := openFolder(dir, slog.New(slog.DiscardHandler))
			if !errors.Is(err, x.want) {
				t.Errorf("%s: got %v, want %v", name, err, x.want)
			}
			if err == nil {
				f.close()
			}
		}
	}
}

// A worker whose folder is deleted while it runs makes it anew, with its lock, and goes on
// under its name and at its address.
func TestFolderDeleted(t *testing.T) {
	for name, part := range map[string]string{"everything": "", "shards": shardsName, "results": resultsName,
		"LOCK": lockName} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			l := c.lead("a", 5)
			dir := filepath.Join(t.TempDir(), "w")
			ready := make(chan Info, 1)
			cfg := Config{
				Join: []string{c.http.Listener.Addr().String()}, Dir: dir, Slots: 1, Listen: "127.0.0.1:0", Log: testLog(t),
				Ready: func(i Info) { ready <- i },
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- Run(ctx, cfg) }()
			defer func() {
				cancel()
				if err := receive(t, "the end of the worker", done); err != nil {
					t.Error(err)
				}
			}()
			info := receive(t, "the worker", ready)
			if err := testkit.RemoveInUse(filepath.Join(dir, part)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the worker to leave and to come back", func() bool {
				b := receive(t, "a beat", l.beats)
				return b.Worker == info.ID && b.Leaving
			})
			eventually(t, "the worker to come back", func() bool {
				b := receive(t, "a beat", l.beats)
				return b.Worker == info.ID && b.Full && !b.Leaving && b.Metrics == info.HTTP && b.Problem == ""
			})
			for _, file := range []string{"FORMAT", "ID", lockName, shardsName, resultsName} {
				if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
			if b := must[[]byte](t)(os.ReadFile(filepath.Join(dir, "ID"))); strings.TrimSpace(string(b)) != info.ID {
				t.Errorf("ID says %q, the worker is %s", b, info.ID)
			}
			if err := Run(ctx, Config{Join: cfg.Join, Dir: dir}); !errors.Is(err, ErrLocked) {
				t.Errorf("a second worker in the folder: %v", err)
			}
		})
	}
}

// A worker that cannot make its folder anew ends.
func TestFolderCannotBeMadeAnew(t *testing.T) {
	c := newCluster(t)
	parent := filepath.Join(t.TempDir(), "p")
	dir := filepath.Join(parent, "w")
	ready := make(chan Info, 1)
	done := make(chan error, 1)
	cfg := Config{Join: []string{c.http.Listener.Addr().String()}, Dir: dir, Slots: 1, Log: testLog(t),
		Ready: func(i Info) {
			ready <- i
		}}
	go func() { done <- Run(t.Context(), cfg) }()
	receive(t, "the worker", ready)
	if err := errors.Join(os.Rename(parent, parent+".old"), os.WriteFile(parent, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "the end of the worker", done); err == nil || !strings.Contains(err.Error(), parent) {
		t.Errorf("it ended with %v", err)
	}
}

// A worker whose folder is read-only says so, to the leader and at /readyz, until it can be
// written again.
func TestFolderReadOnly(t *testing.T) {
	c := newCluster(t)
	l := c.lead("a", 5)
	w := c.start(Config{Listen: "127.0.0.1:0"})
	defer http.DefaultClient.CloseIdleConnections()
	get := func() (int, string) {
		r := must[*http.Response](t)(http.Get("http://" + w.heartbeat.http + "/readyz"))
		defer r.Body.Close()
		return r.StatusCode, string(must[[]byte](t)(io.ReadAll(r.Body)))
	}
	beats := func(problem bool) {
		t.Helper()
		eventually(t, "a beat about the folder", func() bool {
			b := receive(t, "a beat", l.beats)
			return (b.Problem != "") == problem && (!problem || strings.Contains(b.Problem, w.cfg.Dir))
		})
	}
	l.announce()
	eventually(t, "the worker to be ready", func() bool { code, _ := get(); return code == http.StatusOK })
	writable := testkit.ReadOnly(t, w.cfg.Dir)
	eventually(t, "the worker not to be ready", func() bool {
		code, body := get()
		return code == http.StatusServiceUnavailable && strings.Contains(body, "folder cannot be written") &&
			strings.Contains(body, w.cfg.Dir)
	})
	beats(true)
	writable()
	eventually(t, "the worker to be ready again", func() bool {
		l.announce()
		code, _ := get()
		return code == http.StatusOK
	})
	beats(false)
}

// No bit of the small files of a folder keeps a worker from starting in it. A folder of
// somebody else stays one.
func TestFlippedBits(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	open := func() (*folder, string) {
		t.Helper()
		f, err := openFolder(dir, log)
		if err != nil {
			t.Fatal(err)
		}
		id, err := f.id("", "", everyName)
		if err != nil {
			t.Fatal(err)
		}
		return f, id
	}
	f, _ := open()
	f.close()
	for _, name := range []string{"FORMAT", "ID"} {
		path := filepath.Join(dir, name)
		good := must[[]byte](t)(os.ReadFile(path))
		for bit := range 8 * len(good) {
			b := append([]byte(nil), good...)
			b[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, id := open()
			if protocol.CheckID(id) != nil {
				t.Errorf("bit %d of %s: the name %q", bit, name, id)
			}
			f.close()
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("coppice other 11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(dir, log); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder of somebody else: %v", err)
	}
}

// everyName accepts all names.
func everyName(string) bool { return true }

// TestNameThatDoesNotFit: a name that a certificate does not permit is replaced in the folder.
func TestNameThatDoesNotFit(t *testing.T) {
	f, err := openFolder(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	pooled := func(id string) bool { return strings.HasPrefix(id, "gpu-") }
	if _, err := f.id("", "", everyName); err != nil {
		t.Fatal(err)
	}
	for _, drawn := range []string{"gpu-x", "gpu-y"} { // the second one is not needed
		if id, err := f.id("", drawn, pooled); id != "gpu-x" || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	}
}
