package datasetcmd

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/publicsets"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// host is a server with public datasets, and list the path of their list.
type host struct {
	list  string
	asked atomic.Int32
	csv   string // the file of the set made
}

// arff is a set with two labels, which only the XML file names.
const arff = "@relation set\n@attribute x numeric\n@attribute y numeric\n@attribute happy {0,1}\n@attribute sad {0,1}\n" +
	"@data\n1,2,1,0\n2,3,0,1\n3,1,1,1\n1,4,0,1\n2,2,1,0\n5,3,0,1\n4,4,1,0\n2,6,1,1\n"

const arffLabels = `<labels xmlns="http://mulan.sourceforge.net/labels"><label name="happy"/><label name="sad"/></labels>`

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newHost serves the sets made (CSV), classes (with flags to read it), mulan (two files of an archive) and unknown
// (without digest).
func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	b, err := os.ReadFile(cmdtest.ArtificialFile(t, dir, "source.csv", 60, 1))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{csv: string(b)}
	classes := strings.Repeat("1,2,a\n2,1,b\n3,1,b\n", 10)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"mulan.arff": arff, "mulan.xml": arffLabels, "README": "?"} {
		w, err := z.Create("set/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"/made.csv": b, "/classes.csv": []byte(classes), "/mulan.zip": archive.Bytes()}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if files[r.URL.Path] == nil {
			http.NotFound(w, r)
		}
		w.Write(files[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	lines := []string{"name\tfile\taddress\tmember\tbytes\tsha256\tchecked\tread\tlicence\tcitation\tcontent"}
	add := func(cells ...string) { lines = append(lines, strings.Join(cells, "\t")) }
	add("made", "made.csv", s.URL+"/made.csv", "", fmt.Sprint(len(b)), sumOf(h.csv), "2026-08-31", "", "CC BY 4.0",
		"Geng. LDL. 2016", "an artificial set")
	add("classes", "classes.csv", s.URL+"/classes.csv", "", "", sumOf(classes), "", "--labels class --label-columns last "+
		"--header no")
	add("mulan", "mulan.arff", s.URL+"/mulan.zip", "set/mulan.arff", "", sumOf(arff), "never", "--normalize")
	add("mulan", "mulan.xml", s.URL+"/mulan.zip", "set/mulan.xml", "", sumOf(arffLabels))
	add("unknown", "unknown.csv", s.URL+"/made.csv")
	add("gone", "gone.csv", s.URL+"/gone.csv", "", "", sumOf(""))
	h.list = cmdtest.Write(t, dir, "sets.tsv", strings.Join(lines, "\n")+"\n")
	return h
}

// TestFetch: the file is stored, the output has licence and citation, and the printed command trains on the file.
func TestFetch(t *testing.T) {
	h := newHost(t)
	folder := filepath.Join(t.TempDir(), "my data")
	out := cmdtest.Works(t, "dataset", "fetch", "made", "--from", h.list, "--to", folder)
	path := filepath.Join(folder, "made.csv")
	for _, want := range []string{path + ": fetched\n", "licence  CC BY 4.0\n", "cite     Geng. LDL. 2016\n",
		"content  an artificial set\n", "train    coppice train --local --data '" + path + "'\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != h.csv {
		t.Errorf("%v, %d bytes", err, len(b))
	}
	before := h.asked.Load()
	var all []fetchedSet
	cmdtest.JSON(t, &all, "dataset", "fetch", "made", "classes", "mulan", "--from", h.list, "--to", folder)
	if len(all) != 3 || all[0].Fetched != 0 || all[1].Fetched != 1 || all[2].Fetched != 2 || all[0].Licence == "" {
		t.Fatalf("%+v", all)
	}
	if n := h.asked.Load() - before; n != 2 {
		t.Errorf("%d requests", n)
	}
	for i, labels := range []int{3, 2, 2} {
		var r cmdtest.Trained
		cmdtest.JSON(t, &r, cmdtest.Words(t, all[i].Command)...)
		var info struct{ Labels int }
		cmdtest.JSON(t, &info, append([]string{"dataset", "inspect", all[i].Data}, strings.Fields(all[i].Flags)...)...)
		if r.ModelDigest == "" || info.Labels != labels {
			t.Errorf("%s: %+v, %d labels", all[i].Command, r, info.Labels)
		}
	}
}

// TestFetchList: the list has each dataset; the built-in list has flags that the commands know.
func TestFetchList(t *testing.T) {
	h := newHost(t)
	out := cmdtest.Works(t, "dataset", "fetch", "--list", "--from", h.list)
	for _, want := range []string{"2026-08-31", "never", "none", "not known", sumOf(h.csv)[:12], "an artificial set"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	var sets []publicsets.Set
	cmdtest.JSON(t, &sets, "dataset", "fetch", "--list")
	if len(sets) != len(publicsets.BuiltIn()) || h.asked.Load() != 0 {
		t.Errorf("%d sets, %d requests", len(sets), h.asked.Load())
	}
	file := cmdtest.Write(t, t.TempDir(), "a.csv", "1,0.5,0.5\n")
	for _, s := range sets {
		e := cmdtest.Run(t, append([]string{"dataset", "inspect", file}, strings.Fields(s.Flags)...)...)
		if e.Code == cli.ExitUsage && strings.Contains(e.Stderr, "unknown flag") {
			t.Errorf("%s: %s", s.Name, e.Stderr)
		}
	}
}

// TestFetchDigest: a dataset without digest needs --sha256, and then the file must have it.
func TestFetchDigest(t *testing.T) {
	h, folder := newHost(t), t.TempDir()
	fetch := func(args ...string) cmdtest.Ended {
		return cmdtest.Run(t, append([]string{"dataset", "fetch", "--from", h.list, "--to", folder}, args...)...)
	}
	for _, x := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "give --sha256 HEX", []string{"unknown"}},
		{cli.ExitUsage, "64 hexadecimal digits", []string{"unknown", "--sha256", "abc"}},
		{cli.ExitFailed, "has the SHA-256 " + sumOf(h.csv), []string{"unknown", "--sha256", sumOf("other")}},
		{cli.ExitUsage, "the list has another SHA-256 of made", []string{"made", "--sha256", sumOf("other")}},
		{cli.ExitUsage, "for a single dataset", []string{"made", "unknown", "--sha256", sumOf("other")}},
		{cli.ExitUsage, "--list", nil},
		{cli.ExitUsage, "--list", []string{"made", "--list"}},
		{cli.ExitUsage, "needs the name", []string{"--list", "--sha256", sumOf("other")}},
		{cli.ExitUsage, "twice", []string{"made", "made"}},
		{cli.ExitFailed, "no such dataset; it has made\n", []string{"Made"}},
		{cli.ExitFailed, "it has made, classes, mulan", []string{"nothing"}},
		{cli.ExitFailed, "404 Not Found", []string{"gone"}},
	} {
		e := fetch(x.args...)
		if e.Code != x.code || !strings.Contains(e.Stderr, x.want) || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %s", x.args, e.Code, e.Stderr)
		}
		if left := cmdtest.Contents(t, folder); len(left) > 0 {
			t.Errorf("%q: the folder has %q", x.args, left)
		}
	}
	if e := fetch("unknown", "--sha256", strings.ToUpper(sumOf(h.csv))); e.Code != 0 {
		t.Error(e.Stderr)
	}
	if err := os.WriteFile(filepath.Join(folder, "made.csv"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := fetch("made"); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "exists with another SHA-256") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	folder = filepath.Join(folder, "new")
	if e := fetch("gone"); e.Code != cli.ExitFailed {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder that was made for nothing is there")
	}
}

// TestFetchProxy: HTTP_PROXY names a proxy, which gets the address.
func TestFetchProxy(t *testing.T) {
	var address atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address.Store(r.URL.String())
		w.Write([]byte("1,0.5,0.5\n"))
	}))
	defer proxy.Close()
	dir := t.TempDir()
	list := cmdtest.Write(t, dir, "sets.tsv", "name\tfile\taddress\nset\tset.csv\thttp://data.invalid/a/set.csv\n")
	cmd, _, stderr := cmdtest.Process(t, t.TempDir(), "dataset", "fetch", "set", "--from", list, "--to", dir, "--sha256",
		sumOf("1,0.5,0.5\n"))
	cmd.Env = append(cmd.Env, "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if err := cmd.Run(); err != nil || address.Load() != "http://data.invalid/a/set.csv" {
		t.Errorf("%v, %v: %s", err, address.Load(), stderr)
	}
}

// TestFetchInterrupted: Ctrl-C during a download leaves nothing.
func TestFetchInterrupted(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.Write(make([]byte, 50_000))
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(stop)
	list := cmdtest.Write(t, t.TempDir(), "sets.tsv", "name\tfile\taddress\tsha256\nset\tset.csv\t"+s.URL+"\t"+sumOf("")+"\n")
	folder := filepath.Join(t.TempDir(), "data")
	cmd, _, stderr := cmdtest.Process(t, t.TempDir(), "dataset", "fetch", "set", "--from", list, "--to", folder)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a download to begin", func() bool {
		parts, _ := filepath.Glob(filepath.Join(folder, ".set.csv.*"))
		return len(parts) == 1
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitSignal+int(syscall.SIGINT) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("the folder is left: %q", cmdtest.Contents(t, folder))
	}
}
