package clusters_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/protocol"
)

// A cluster of processes loses its leader for good while a job runs, gets another
// coordinator instead, and is backed up; the restored cluster goes on to the same
// digest.
func TestReplaceBackupRestore(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 2000, 1)
	c := cmdtest.Start(t, 3, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	const steps = 1200 / testkit.Slowdown
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, steps, "--local")...))
	s := &survivors{t: t, c: c, data: data}
	end := s.begin("long", steps)
	backup := filepath.Join(dir, "the.backup")
	var saved struct {
		File string
		archive.Header
	}
	cmdtest.JSON(t, &saved, "backup", backup)
	if saved.File != backup || saved.Blobs == 0 || saved.Index == 0 {
		t.Errorf("backed up %+v", saved)
	}
	replaceLeader(t, s)
	if got := cmdtest.ModelDigest(t, <-end); got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	if got := restoredDigest(t, dir, backup); got != want {
		t.Errorf("digest %s after the restore, --local has %s", got, want)
	}
	restoreRefuses(t, dir, backup)
}

// replaceLeader kills the leader, removes it, and adds another coordinator.
func replaceLeader(t *testing.T, s *survivors) {
	t.Helper()
	leader := cmdtest.KillLeader(t, s.c)
	cmdtest.Works(t, "cluster", "remove", leader.Name)
	d, http, err := s.c.AddCoordinator()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COPPICE_SERVER", s.c.Servers())
	testkit.Until(t, "d to be added", func() bool {
		e := cmdtest.Run(t, "cluster", "add", d.Name+"="+http)
		if e.Code != cli.ExitOK && !strings.Contains(e.Stderr, "no coordinator answers the leader at") {
			t.Fatalf("%+v", e)
		}
		return e.Code == cli.ExitOK
	})
	var m protocol.Members
	cmdtest.JSON(t, &m, "cluster", "members")
	text := cmdtest.Works(t, "cluster", "members")
	if len(m.Members) != 3 || !strings.Contains(text, http) || strings.Contains(text, s.c.HTTP(leader)) {
		t.Errorf("members:\n%s", text)
	}
	var moved struct{ Leader string }
	if cmdtest.JSON(t, &moved, "cluster", "transfer", d.Name); moved.Leader != d.Name {
		t.Errorf("%s leads", moved.Leader)
	}
	// The old leader comes back with its folder: it finds that it was removed, and ends.
	if err := leader.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the end of "+leader.Name, func() bool { return !leader.Running() })
	if log, err := os.ReadFile(leader.Log); err != nil || !strings.Contains(string(log), coordinator.ErrRemoved.Error()) {
		t.Errorf("it ended with %v: %s", leader.Err(), log)
	}
}

// restoredDigest starts a cluster of one from a backup and waits for its job.
func restoredDigest(t *testing.T, dir, backup string) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "restored")
	var r coordinator.Restored
	cmdtest.JSON(t, &r, "restore", backup, "--dir", folder, "--peers", "a="+at)
	if r.Jobs != 1 || r.Cluster == r.From.Cluster || r.Index <= r.From.Index {
		t.Errorf("restored %+v", r)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"coordinator", "--id", "a", "--dir", folder, "--peers", "a=" + at, "--die-with-stdin"},
		{"worker", "--join", at, "--dir", filepath.Join(dir, "worker"), "--die-with-stdin"},
	} {
		n, err := proc.Launch(exe, []string{cmdtest.AsCommand + "=1"}, args[0], filepath.Join(dir, "logs", args[0]+".log"),
			args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Quit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	var got cmdtest.Trained
	cmdtest.JSON(t, &got, "job", "watch", "long", "--server", at)
	return got.ModelDigest
}

// restoreProgress is what a restore prints if it takes longer than a second.
var restoreProgress = regexp.MustCompile(`(?m)^\d+ of \d+ blobs\n`)

// restoreRefuses checks what the commands say of what they cannot do.
func restoreRefuses(t *testing.T, dir, backup string) {
	t.Helper()
	b, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-100] ^= 1
	damaged := cmdtest.Write(t, dir, "damaged.backup", string(b))
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"restore", damaged, "--dir", filepath.Join(dir, "new")}, cli.ExitFailed, "damaged.backup"},
		{[]string{"restore", backup, "--dir", filepath.Join(dir, "restored")}, cli.ExitFailed, "coppice: " +
			filepath.Join(dir, "restored") + ": the folder is not empty"},
		{[]string{"restore", filepath.Join(dir, "none"), "--dir", filepath.Join(dir, "new")}, cli.ExitFailed, "no such file"},
		{[]string{"restore", backup, "--dir", filepath.Join(dir, "new"), "--peers", "b=h:1"}, cli.ExitUsage, `"a"`},
		{[]string{"backup", filepath.Join(dir, "nowhere", "x")}, cli.ExitFailed, "folder does not exist"},
		{[]string{"cluster", "add", "d"}, cli.ExitUsage, "ID=HOST:PORT"},
		{[]string{"cluster", "remove", "nobody"}, cli.ExitFailed, `"nobody"`},
		{[]string{"cluster", "transfer", "nobody"}, cli.ExitFailed, `"nobody"`},
	} {
		e := cmdtest.Run(t, test.args...)
		said := restoreProgress.ReplaceAllString(e.Stderr, "")
		if e.Code != test.code || !strings.Contains(said, test.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", test.args, e.Code, e.Stderr)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "new")); len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("refused restores leave %v", left)
	}
	for _, command := range [][]string{{"backup"}, {"restore"}, {"cluster", "add"}, {"cluster", "members"},
		{"cluster", "remove"}, {"cluster", "transfer"}} {
		if e := cmdtest.Run(t, append(command, "--help")...); e.Code != cli.ExitOK ||
			!strings.Contains(e.Stdout, "Usage: coppice "+strings.Join(command, " ")) {
			t.Errorf("%v --help: exit code %d\n%s", command, e.Code, e.Stdout)
		}
	}
}
