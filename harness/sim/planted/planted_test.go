package planted

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

var (
	plant = flag.Bool("planted", false, "build each bug in and look for it: some minutes")
	only  = flag.String("planted.only", "", "plant only bugs whose names match this expression")
)

// within is how many seeds a bug may hide for.
const within = 200

// root returns the module's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// mutate returns the changed files of a bug, by path. An edit whose text is not
// there exactly once is an error: the code has moved on, and the bug must follow.
func (b *Bug) mutate(dir string) (map[string]string, error) {
	files := make(map[string]string)
	for _, e := range b.Edits {
		path := filepath.Join(dir, filepath.FromSlash(e.File))
		text, ok := files[path]
		if !ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("planted: %s: %s has %d times what is to be changed: %q", b.Name, e.File, n, e.Old)
		}
		files[path] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// overlay writes the changed files and the JSON that go test -overlay wants.
func overlay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, replace := t.TempDir(), make(map[string]string)
	for path, text := range files {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEditsFit: each bug's edits find their place in the code as it is.
func TestEditsFit(t *testing.T) {
	for _, b := range slices.Concat(Bugs, Holes) {
		if _, err := b.mutate(root(t)); err != nil {
			t.Error(err)
		}
	}
}

var found = regexp.MustCompile(`(?s)seed (\d+): check "([a-z]+)": ([^\n]*)`)

// failed matches what a test says that fails, and not what it logs.
var failed = regexp.MustCompile(`_test\.go:[0-9]+: (?:[^t\n]|t[^i\n])[^\n]*`)

// TestPlanted plants each bug and has the simulation find it, or its test; -planted
// asks for it.
func TestPlanted(t *testing.T) {
	if !*plant {
		t.Skip("takes minutes: go test ./harness/sim/planted -planted -v")
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "bug\tfound at seed\tby the check")
	for _, b := range slices.Concat(Bugs, Holes) {
		if !pick.MatchString(b.Name) {
			continue
		}
		m, err := hunt(t, &b)
		if err != nil {
			t.Error(err)
			continue
		}
		if m == nil {
			fmt.Fprintf(w, "%s\tnot found\t\n", b.Name)
			t.Errorf("%s was not found within %d seeds", b.Name, within)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", b.Name, m[1], m[2])
		t.Logf("%s: seed %s, check %q: %.200s", b.Name, m[1], m[2], m[3])
	}
	w.Flush()
	t.Logf("\n%s", table.String())
}

// hunt runs the simulation with a bug and returns what it finds: the whole line,
// seed, check and text; nil for nothing.
func hunt(t *testing.T, b *Bug) ([]string, error) {
	t.Helper()
	files, err := b.mutate(root(t))
	if err != nil {
		return nil, err
	}
	args := []string{"-run", "^TestSeeds$", "./harness/sim", "-sim.first", fmt.Sprintf("-sim.seeds=%d", within)}
	if b.Test != nil {
		args = []string{"-run", "^" + b.Test.Name + "$", b.Test.Package}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-overlay", overlay(t, files)},
		args...)...)
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	if b.Test != nil && failed.Match(out) {
		return []string{"", "-", b.Test.Name, string(failed.Find(out))}, nil
	}
	m := found.FindStringSubmatch(string(out))
	if m == nil {
		return nil, fmt.Errorf("%s: the simulation did not run: %w\n%s", b.Name, err, out)
	}
	return m, nil
}
