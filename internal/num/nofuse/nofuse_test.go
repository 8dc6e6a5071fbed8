package nofuse

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	sites, err := Find("testdata", "./fused", "./shared")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no go command to compile with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, s := range sites {
		got[s.Target+" "+s.Function] = true
	}
	want := map[string]bool{
		"arm64 fused.Bare": true, "arm64 fused.Bare32": true, "arm64 fused.Explicit": true,
		"amd64/v3 fused.Bare": true, "amd64/v3 fused.Explicit": true, "amd64/v3 fused.Apart": true,
		"arm64 shared.Bare": true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fused functions (-want +got):\n%s\n%v", d, sites)
	}
}

func TestFindReportsWhatDoesNotCompile(t *testing.T) {
	if _, err := Find("testdata", "."); err == nil {
		t.Error("a folder without Go compiles")
	}
}
