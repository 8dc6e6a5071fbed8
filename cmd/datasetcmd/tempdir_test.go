package datasetcmd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestKilledImport: what an import that was killed left in the folder for temporary files goes with the next command
// that needs one.
func TestKilledImport(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	asked := make(chan struct{}, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/datasets") { // the first request after the shards were made
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is killed
			asked <- struct{}{}
			<-r.Context().Done()
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(slow.Close)
	for _, args := range [][]string{
		{"dataset", "import", "--data", data, "--name", "d"},
		{"train", "--data", data},
	} {
		cmd, _, stderr := cmdtest.Process(t, tmp, append(args, "--server", slow.URL)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the shards", func() bool { return len(asked) > 0 })
		<-asked
		cmd.Process.Kill()
		cmd.Wait()
		left := cmdtest.Contents(t, tmp)
		if len(left) != 1 || !strings.HasPrefix(left[0], "coppice-import-") {
			t.Fatalf("%v: the process that was killed left %v\n%s", args, left, stderr)
		}
	}
	t.Setenv("TMPDIR", tmp)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(protocol.Problem{Error: "no"})
	}))
	t.Cleanup(refuses.Close)
	if e := cmdtest.Run(t, "dataset", "import", "--data", data, "--name", "d", "--server",
		refuses.URL); e.Code != cli.ExitFailed {
		t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
	}
	if left := cmdtest.Contents(t, tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestNoTemporaryFolder: an error about the folder for temporary files names TMPDIR and what to do.
func TestNoTemporaryFolder(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 20, 1)
	none := filepath.Join(dir, "none")
	t.Setenv("TMPDIR", none)
	want := "coppice: TMPDIR is " + none + ": the folder does not exist; set TMPDIR to a folder that exists and is " +
		"writable\n"
	for _, args := range [][]string{
		{"dataset", "import", "--data", data, "--name", "d", "--server", "127.0.0.1:1"},
		{"dataset", "inspect", "-", "--data-format", "csv"},
		{"quickstart"},
		{"bench", "cluster"},
		{"chaos", "--rounds", "1"},
	} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitFailed || !strings.HasSuffix(e.Stderr, want) {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
}
