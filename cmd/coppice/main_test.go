package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// asCommand makes this test binary the coppice command, so that tests can start
// real processes of it, with the race detector where the tests have it.
const asCommand = "COPPICE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		if path := os.Getenv(peakFile); path != "" {
			os.Exit(withPeak(path))
		}
		main()
		return
	}
	if err := enterNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	os.Setenv("XDG_CONFIG_HOME", os.DevNull) // no contexts of the user who runs the tests
	os.Exit(raceFree(m.Run))
}

// ended is what a command line ended with.
type ended struct {
	code           int
	stdout, stderr string
}

var aboutFile = regexp.MustCompile(`(?m)^/.*\n`)

// withoutNotes returns what a command says on stderr without the lines that say how a file was read.
func withoutNotes(stderr string) string { return aboutFile.ReplaceAllString(stderr, "") }

// coppice runs a command line in this process.
func coppice(t *testing.T, args ...string) ended {
	t.Helper()
	ctx := testkit.Context(t)
	return coppiceIn(ctx, args...)
}

func coppiceIn(ctx context.Context, args ...string) ended {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return ended{code, stdout.String(), stderr.String()}
}

// works runs a command line that must succeed.
func works(t *testing.T, args ...string) string {
	t.Helper()
	e := coppice(t, args...)
	if e.code != exitOK {
		t.Fatalf("coppice %s: exit code %d\n%s", strings.Join(args, " "), e.code, e.stderr)
	}
	return e.stdout
}

// inJSON runs a command line that must print one JSON value, which goes into v.
func inJSON(t *testing.T, v any, args ...string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(works(t, append(args, "-o", "json")...)))
	if err := d.Decode(v); err != nil {
		t.Fatalf("coppice %s: %v", strings.Join(args, " "), err)
	}
	if d.More() {
		t.Fatalf("coppice %s: more than one JSON value", strings.Join(args, " "))
	}
}

// artificialFile writes the artificial set to a file of the folder dir.
func artificialFile(t *testing.T, dir, name string, rows int, seed uint64) string {
	t.Helper()
	var b strings.Builder
	if err := dataset.WriteCSV(&b, dataset.Artificial(rows, seed), dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	return write(t, dir, name, b.String())
}

// write writes a file of the folder dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents lists the files of a folder.
func contents(t *testing.T, dir string) (names []string) {
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
