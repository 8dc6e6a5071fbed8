package lint

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// linesFile has the code lines that each top folder may have, without tests. Its rows for a folder add up: the first is
// a number; each other one is + or - and a number, and then the reason.
const linesFile = "testdata/lines.txt"

// TestLines: no top folder has more lines of code than linesFile allows. What goes in takes something out, or gives a
// reason. With -lower, folders with fewer lines may no longer have more.
func TestLines(t *testing.T) {
	found := make(map[string]int)
	for _, s := range sources(t) {
		if !s.test() {
			top, _, _ := strings.Cut(path.Dir(s.name), "/")
			found[top] += s.code(t)
		}
	}
	text, err := os.ReadFile(linesFile)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := parseLines(string(text))
	if err != nil {
		t.Fatalf("%s: %v", linesFile, err)
	}
	var b strings.Builder
	for _, top := range slices.Sorted(maps.Keys(found)) {
		limit, known := allowed[top]
		switch n := found[top]; {
		case !known:
			t.Errorf("%s has no row for %s: add %s %d", linesFile, top, top, n)
		case n > limit:
			t.Errorf("%s has %d lines of code, and %s allows %d: take %d lines out, or add a row: %s +%d REASON",
				top, n, linesFile, limit, n-limit, top, n-limit)
		case n < limit && *lower:
			fmt.Fprintln(&b, top, n)
		default:
			for row := range strings.Lines(string(text)) {
				if strings.HasPrefix(row, top+" ") {
					b.WriteString(row)
				}
			}
		}
	}
	if *lower && !t.Failed() {
		if err := os.WriteFile(linesFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// parseLines reads the rows of linesFile, and adds them up by folder.
func parseLines(text string) (map[string]int, error) {
	all := make(map[string]int)
	for row := range strings.Lines(text) {
		f := strings.Fields(row)
		if len(f) < 2 {
			return nil, fmt.Errorf("%q: want FOLDER NUMBER", row)
		}
		n, err := strconv.Atoi(f[1])
		_, again := all[f[0]]
		switch change := strings.ContainsAny(f[1][:1], "+-"); {
		case err != nil:
			return nil, fmt.Errorf("%q: %w", row, err)
		case change != again:
			return nil, fmt.Errorf("%q: want one row with a number for each folder, and then rows with + or -", row)
		case change && len(f) < 5:
			return nil, fmt.Errorf("%q: want the reason, in three words or more", row)
		}
		all[f[0]] += n
	}
	return all, nil
}

func TestParseLines(t *testing.T) {
	got, err := parseLines("worker 100\nclient 20\nworker +5 it reads a format\nworker -3 a fallback went\n")
	if err != nil || got["worker"] != 102 || got["client"] != 20 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"worker\n", "worker x\n", "worker 1\nworker 2\n", "worker +1 for a reason\n",
		"worker 1\nworker +1 for fun\n"} {
		if got, err := parseLines(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
