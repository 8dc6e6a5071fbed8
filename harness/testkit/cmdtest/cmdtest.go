// Package cmdtest runs commands of coppice in tests: in the process of the test, and in processes of their own, which
// are the test binary again. Clusters of such processes are in cluster.go, networks in network.go.
//
// The package does not import the commands, so that their own tests can use it: Main is told what they are.
package cmdtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// AsCommand is an environment variable. If it is set, the test binary is the command coppice, so that tests start real
// processes of it, with the race detector if the tests have it.
const AsCommand = "COPPICE_TEST_AS_COMMAND"

// RunFunc runs a command line in this process, and returns its exit code.
type RunFunc func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// run is the RunFunc of Main.
var run RunFunc

// Main is the TestMain of a package with tests of commands: main is the main function of coppice, and inProcess runs a
// command line. If a process that a test started had a data race, the tests fail.
func Main(m *testing.M, main func(), inProcess RunFunc) {
	if os.Getenv(AsCommand) != "" {
		main()
		return
	}
	if err := enterNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("XDG_CONFIG_HOME", os.DevNull) // no contexts of the user who runs the tests
	run = inProcess
	os.Exit(raceFree(m.Run))
}

// Ended is the end of a command.
type Ended struct {
	Code           int // exit code
	Stdout, Stderr string
}

// Run runs a command line in this process.
func Run(t *testing.T, args ...string) Ended {
	t.Helper()
	return RunContext(testkit.Context(t), args...)
}

// RunContext is Run until the end of a context.
func RunContext(ctx context.Context, args ...string) Ended {
	var stdout, stderr bytes.Buffer
	code := RunWith(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return Ended{code, stdout.String(), stderr.String()}
}

// RunWith runs a command line in this process with other streams, and returns its exit code.
func RunWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, args, stdin, stdout, stderr)
}

// Works runs a command line, which must succeed, and returns its output.
func Works(t *testing.T, args ...string) string {
	t.Helper()
	e := Run(t, args...)
	if e.Code != 0 {
		t.Fatalf("coppice %s: exit code %d\n%s", strings.Join(args, " "), e.Code, e.Stderr)
	}
	return e.Stdout
}

// JSON runs a command line with -o json, which must print one JSON value, and decodes the value into v.
func JSON(t *testing.T, v any, args ...string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(Works(t, append(args, "-o", "json")...)))
	if err := d.Decode(v); err != nil {
		t.Fatalf("coppice %s: %v", strings.Join(args, " "), err)
	}
	if d.More() {
		t.Fatalf("coppice %s: more than one JSON value", strings.Join(args, " "))
	}
}

// Trained is the part of the JSON of train that tests of several packages read.
type Trained struct {
	Job           string             `json:"job"`
	Dataset       string             `json:"dataset"`
	DatasetDigest string             `json:"dataset_digest"`
	Rows          pipeline.Counts    `json:"samples"`
	Spent         map[string]float64 `json:"spent_seconds"`
	Folds         []Fold             `json:"folds"`
	Fold                             // of a job without folds
}

// Fold is the part of the JSON of train about one model.
type Fold struct {
	Measures    measures.Report `json:"measures"`
	Added       *pipeline.Added `json:"added"`
	ModelDigest string          `json:"model_digest"`
	pipeline.Baselines
}

// Words splits a command line as a shell does, and returns its words without the first, which must be coppice.
func Words(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "printf '%s\\0' "+line).Output()
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if err != nil || words[0] != "coppice" {
		t.Fatalf("%s: %q, %v", line, words, err)
	}
	return words[1:]
}

// Refused runs a command line in which @ stands for a folder with files. The command must end with the exit code, must
// print nothing but one line on stderr, which contains each of says, and must not change the names in the folder.
func Refused(t *testing.T, files map[string]string, args string, code int, says []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		Write(t, dir, name, text)
	}
	before := Contents(t, dir)
	e := Run(t, strings.Fields(strings.ReplaceAll(args, "@", dir))...)
	e.Stderr = WithoutNotes(e.Stderr)
	begins := "coppice: "
	if strings.Contains(args, "-o json") {
		begins = `{"error":`
	}
	if e.Code != code || e.Stdout != "" || strings.Count(e.Stderr, "\n") != 1 || !strings.HasPrefix(e.Stderr, begins) {
		t.Errorf("exit code %d, want %d, and one line:\n%s%s", e.Code, code, e.Stdout, e.Stderr)
	}
	for _, word := range says {
		if !strings.Contains(e.Stderr, word) {
			t.Errorf("%q does not say %q", e.Stderr, word)
		}
	}
	if after := Contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder had %q, and now %q", before, after)
	}
}

// Process prepares a process of coppice with tmp as its folder for temporary files. Its output goes to the two buffers.
// It is killed at the end of the test.
func Process(t *testing.T, tmp string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, stdout, stderr = exec.CommandContext(t.Context(), exe, args...), new(bytes.Buffer), new(bytes.Buffer)
	cmd.Env = append(os.Environ(), AsCommand+"=1", "TMPDIR="+tmp)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 10 * time.Second
	return cmd, stdout, stderr
}

var aboutFile = regexp.MustCompile(`(?m)^/.*\n`)

// WithoutNotes removes the lines that say how a file was read from the stderr of a command.
func WithoutNotes(stderr string) string { return aboutFile.ReplaceAllString(stderr, "") }

// ArtificialFile writes rows of the artificial dataset to a CSV file of a folder, and returns its path.
func ArtificialFile(t *testing.T, dir, name string, rows int, seed uint64) string {
	t.Helper()
	var b strings.Builder
	if err := write.WriteCSV(&b, generate.Artificial(rows, seed), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	return Write(t, dir, name, b.String())
}

// Write writes a file of a folder, and returns its path.
func Write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Contents lists the names in a folder.
func Contents(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Listens reports whether a process listens at an address.
func Listens(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// raceFree runs the tests, and fails if one of the processes that they started had a data race. Each process writes its
// reports to a file: a process that is killed has no exit code, and few tests read what a process prints. With the
// option atexit_sleep_ms, no process sleeps for a second before it ends. Without the race detector, it only runs the
// tests.
func raceFree(run func() int) (code int) {
	if !testkit.Race {
		return run()
	}
	dir, err := os.MkdirTemp("", "coppice-races-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0 log_path="+filepath.Join(dir, "report"))
	code = run()
	reports, _ := filepath.Glob(filepath.Join(dir, "report.*"))
	for _, path := range reports {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(os.Stderr, "a process of a test had a data race:\n%s\n", text)
		code = 1
	}
	return code
}
