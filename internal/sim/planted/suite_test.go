package planted

import (
	"fmt"
	"os/exec"
	"regexp"
	"testing"
)

func TestSuiteEditsFit(t *testing.T) {
	for i := range SuiteBugs {
		if _, err := SuiteBugs[i].mutate(root(t)); err != nil {
			t.Error(err)
		}
	}
}

// failed is how the suite says what it found: the fault, and what was wrong.
var failed = regexp.MustCompile(`coppice: round \d+, ([a-z-]+): (the suite failed: [^\n]*)`)

// TestSuiteFinds plants each bug and has the suite find it; -planted asks for it.
func TestSuiteFinds(t *testing.T) {
	if !*plant {
		t.Skip("takes minutes: go test ./internal/sim/planted -planted -v")
	}
	pick := regexp.MustCompile(*only)
	for i := range SuiteBugs {
		b := &SuiteBugs[i]
		if !pick.MatchString(b.Name) {
			continue
		}
		m, err := b.hunt(t)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s: fault %s: %.200s", b.Name, m[1], m[2])
	}
}

// hunt runs the test with the bug and returns what the suite finds.
func (b *SuiteBug) hunt(t *testing.T) ([]string, error) {
	t.Helper()
	files, err := b.mutate(root(t))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-overlay", overlay(t, files), "-run", "^"+b.Test+"$", "./cmd/coppice")
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	m := failed.FindStringSubmatch(string(out))
	switch {
	case err == nil:
		return nil, fmt.Errorf("%s: the suite did not find it\n%s", b.Name, out)
	case m == nil:
		return nil, fmt.Errorf("%s: the suite did not run: %w\n%s", b.Name, err, out)
	}
	return m, nil
}
