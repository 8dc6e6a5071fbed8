package commands

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// closedAddress returns an address at which nobody listens, or can listen, as long as the test runs: its port is bound.
func closedAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// A command that a signal ends has the exit code that shells give; a service that SIGINT or
// SIGTERM stops ends well.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	endless := []string{"train", "--local", "--data", data, "--steps", "1000000000", "--set", "patience=1000000",
		"--model-out"}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("this test was started with the signal ignored, as by nohup, and so is what it starts")
			}
			t.Parallel()
			tmp := t.TempDir()
			cmd, _, stderr := cmdtest.Process(t, tmp, append(endless, filepath.Join(tmp, "m.model"))...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "the file to be begun", func() bool { return len(cmdtest.Contents(t, tmp)) == 1 })
			cmd.Process.Signal(s)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitSignal+int(s) ||
				cmdtest.WithoutNotes(stderr.String()) != "coppice: interrupted\n" {
				t.Errorf("the command: exit code %d, %s", code, stderr)
			}
			free := testkit.FreeAddress(t)
			service, _, log := cmdtest.Process(t, tmp, "coordinator", "--dir", filepath.Join(tmp, "a"), "--peers", "a="+free)
			if err := service.Start(); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "the coordinator to listen", func() bool { return cmdtest.Listens(free) })
			service.Process.Signal(s)
			if s == syscall.SIGHUP { // which does not end a service
				service.Process.Signal(syscall.SIGTERM)
			}
			if err := service.Wait(); err != nil {
				t.Errorf("the service: %v\n%s", err, log)
			}
		})
	}
}

// With -o json an error is one JSON object, the last line of stderr, also that of a command line that
// cannot be read.
func TestErrorsInJSON(t *testing.T) {
	dir := t.TempDir()
	nobody := closedAddress(t)
	tests := []struct {
		args string
		want cli.Failure
	}{
		{"train --lokal -o json",
			cli.Failure{Error: `unknown flag --lokal, did you mean "--local"?; see "coppice train --help"`,
				Kind: "usage", Code: 2}},
		{"--output=json trian", cli.Failure{Error: `unexpected argument trian, did you mean "train"?; see "coppice --help"`,
			Kind: "usage", Code: 2}},
		{"predict -o json --model @/none --data @/x.csv --out @/p.csv",
			cli.Failure{Error: dir + "/none: no such file or folder", Kind: "not_found", Code: 1}},
		{"train -o json --local", cli.Failure{Error: "want data to train on: give --data FILE or --dataset NAME",
			Kind: "usage", Code: 2}},
		{"job list -o json --server " + nobody, cli.Failure{Error: "no coordinator answers at " + nobody +
			": connection refused; is the coordinator running, and is --server right?", Kind: "unavailable", Code: 1}},
	}
	for _, test := range tests {
		cmd, stdout, stderr := cmdtest.Process(t, dir, strings.Fields(strings.ReplaceAll(test.args, "@", dir))...)
		cmd.Run()
		var got cli.Failure
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n") // progress comes before
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || stdout.Len() > 0 {
			t.Errorf("%s: %v, %s", test.args, err, stdout)
		}
		if got.Form != nil && got.Form.Whole().String() != got.Error {
			t.Errorf("%s: the form has the text %s", test.args, got.Form.Whole())
		}
		got.Form = nil
		if diff := cmp.Diff(test.want, got); diff != "" || got.Code != cmd.ProcessState.ExitCode() {
			t.Errorf("%s: exit code %d, %s", test.args, cmd.ProcessState.ExitCode(), diff)
		}
	}
}

// TestTwoWaysAreUsage: a file that can be read in two ways ends train with exit code 2, in text and in JSON, and
// inspect with 0.
func TestTwoWaysAreUsage(t *testing.T) {
	file := cmdtest.Write(t, t.TempDir(), "a.csv", "x,class\n1,7\n2,8\n3,007\n")
	for _, more := range [][]string{nil, {"-o", "json"}} {
		e := cmdtest.Run(t, append([]string{"train", "--local", "--algorithm", "aa-knn", "--data", file, "--labels", "class"},
			more...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "write both as 7") {
			t.Errorf("%v: exit code %d, %s", more, e.Code, e.Stderr)
		}
	}
	if out := cmdtest.Works(t, "dataset", "inspect", file, "--labels", "class"); !strings.Contains(out,
		"write both as 7") {
		t.Errorf("inspect says %s", out)
	}
}
