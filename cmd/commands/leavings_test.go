package commands

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Images that are not all written are taken away; a folder that was there stays.
func TestTexturesLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := cmdtest.RunContext(ctx, "dataset", "generate", "--kind", "textures", "--out", filepath.Join(dir, "new"))
	if left := cmdtest.Contents(t, dir); e.Code == ExitOK || len(left) > 0 {
		t.Errorf("exit code %d, %q is left", e.Code, left)
	}
	e = cmdtest.RunContext(ctx, "dataset", "generate", "--kind", "textures", "--out", dir)
	if left := cmdtest.Contents(t, dir); e.Code == ExitOK || len(left) > 0 {
		t.Errorf("exit code %d, %q is left in a folder that was there", e.Code, left)
	}
}

// A figure that cannot be written fails the command, but its result is printed.
func TestResultWithoutFigures(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	figures := filepath.Join(dir, "figures")
	if err := os.MkdirAll(filepath.Join(figures, "learning-curve.svg"), 0o777); err != nil {
		t.Fatal(err)
	}
	e := cmdtest.Run(t, "train", "--local", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1), "--algorithm", "structrf", "--set", "trees=3", "--figures", figures)
	if e.Code != ExitFailed || !strings.Contains(e.Stderr, "learning-curve.svg") || !strings.Contains(e.Stdout, "model digest") {
		t.Errorf("exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
}

// An error of several parts is one line, and a folder in the place of a file is named.
func TestErrorLines(t *testing.T) {
	dir := t.TempDir()
	_, read := os.ReadFile(dir)
	_, listed := os.ReadDir(cmdtest.Write(t, dir, "file", ""))
	for want, err := range map[string]error{
		"first; second": errors.Join(errors.New("first"), errors.New("second")),
		dir + ": is a folder; give the name of a file":                          read,
		filepath.Join(dir, "file") + ": is not a folder, or is not in a folder": listed,
	} {
		if got := failureOf(t.Context(), err).Error; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// full is a stdout without room.
type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Help that cannot be written is a failure, and no wrong usage.
func TestHelpWithoutRoom(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "train"}, {"train", "--help"}} {
		var stderr strings.Builder
		if code := Run(t.Context(), args, strings.NewReader(""), full{}, &stderr); code != ExitFailed || !strings.Contains(stderr.String(), "stdout: cannot be written") {
			t.Errorf("%q: exit code %d, %s", args, code, stderr.String())
		}
	}
}
