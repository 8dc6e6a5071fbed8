package commands

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// escape is what a file or another machine may send to a terminal: a colour, a sequence of one character, text from
// right to left, a bell, and a byte that is not UTF-8.
const escape = "\x1b[31m\u009b2J\u202e\a"

// obeyed reports whether a terminal would do anything but show a text.
func obeyed(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 &&
			r <= 0x2069
	})
}

// escaped is the beginning of escape as it is shown: plain, or quoted.
const escaped = `\x1b[31m`

// shows checks that the output of a command has text from a file, and nothing that a terminal obeys.
func shows(t *testing.T, code int, args ...string) {
	t.Helper()
	e := cmdtest.Run(t, args...)
	if all := e.Stdout + e.Stderr; e.Code != code || obeyed(all) || !strings.Contains(all, escaped) {
		t.Errorf("exit code %d; a terminal obeys it, or it lacks %s: %q", e.Code, escaped, all)
	}
}

// fakeCluster answers for one dataset and one job, which failed for a reason that a worker gave.
func fakeCluster(t *testing.T, data *protocol.Dataset, job *protocol.JobInfo) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch e := json.NewEncoder(w); {
		case strings.HasPrefix(r.URL.Path, "/v1/datasets/"):
			e.Encode(data)
		case strings.HasPrefix(r.URL.Path, "/v1/datasets"):
			e.Encode([]*protocol.Dataset{data})
		case strings.HasPrefix(r.URL.Path, "/v1/jobs/"):
			e.Encode(job)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestNothingIsObeyed: what a file and other machines say is shown by every command, and obeyed by no terminal; files
// and JSON have it as it is.
func TestNothingIsObeyed(t *testing.T) {
	dir := t.TempDir()
	header, row := "age"+escape+"x", "person"+escape
	rows := strings.Repeat(row+",1,0.5,0.5\n"+row+",2,0.25,0.75\n", 20)
	file := cmdtest.Write(t, dir, "data.csv", "row_name,"+header+",label_a"+escape+",label_b\n"+rows)
	src, err := read.Open(file, read.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shows(t, cli.ExitOK, "dataset", "inspect", file)
	text := cmdtest.Write(t, dir, "text.csv", "t"+escape+",label_a,label_b\nword"+escape+",0.5,0.5\n")
	shows(t, cli.ExitOK, "dataset", "inspect", text)
	shows(t, cli.ExitFailed, "train", "--local", "--data", text)
	shows(t, cli.ExitFailed, "dataset", "inspect", dir+"/none"+escape+".csv")
	shows(t, cli.ExitUsage, "dataset", "inspect"+escape)
	model := dir + "/m.model"
	cmdtest.Run(t, "train", "--local", "--data", file, "--algorithm", "aa-knn", "--model-out", model)
	shows(t, cli.ExitOK, "model", "show", model)
	out := dir + "/p.csv"
	cmdtest.Works(t, "predict", "--model", model, "--data", file, "--out", out)
	if b, err := os.ReadFile(out); err != nil || !bytes.Contains(b, []byte(row)) {
		t.Errorf("a file of predictions lacks the name as it is: %q, error %v", b, err)
	}
	if piped := cmdtest.Works(t, "predict", "--model", model, "--data", file, "--out",
		"-"); !strings.Contains(piped, row) {
		t.Errorf("stdout in place of a file lacks the name as it is: %q", piped)
	}
	shows(t, cli.ExitOK, "evaluate", "--model", model, "--data", file, "--per-sample")

	job := &protocol.JobInfo{ID: 1, Name: "j", State: protocol.Failed, Error: "worker w2: step 3: cannot " + escape +
		"\xff read"}
	at := fakeCluster(t, &protocol.Dataset{Name: "d", Digest: m.Digest(), Manifest: m}, job)
	shows(t, cli.ExitOK, "dataset", "show", "d", "--server", at)
	shows(t, cli.ExitOK, "job", "show", "j", "--server", at)
	shows(t, cli.ExitFailed, "job", "watch", "j", "--server", at)

	e := cmdtest.Run(t, "job", "show", "j", "--server", at, "-o", "json")
	var shown protocol.JobInfo
	if err := json.Unmarshal([]byte(e.Stdout), &shown); err != nil ||
		shown.Error != strings.ToValidUTF8(job.Error, "\ufffd") || obeyed(e.Stdout) {
		t.Errorf("JSON: %q, error %v", e.Stdout, err)
	}
	var failed cli.Failure
	e = cmdtest.Run(t, "train", "--local", "--data", text, "-o", "json")
	if err := json.Unmarshal([]byte(e.Stderr), &failed); err != nil || !strings.Contains(failed.Error, `\x1b[31m`) ||
		obeyed(e.Stderr) {
		t.Errorf("an error in JSON: %q, error %v", e.Stderr, err)
	}
}
