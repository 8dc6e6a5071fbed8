package commands

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestPrefix: commands reach a coordinator below a path, and what they advise has the path.
func TestPrefix(t *testing.T) {
	dir, address := t.TempDir(), testkit.FreeAddress(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 1)
	go func() {
		ends <- cmdtest.RunContext(ctx, "coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+address,
			"--http-prefix", "/ml/coppice")
	}()
	defer func() { cancel(); testkit.Receive(t, "the end of the coordinator", ends) }()
	server := "http://" + address + "/ml/coppice"
	out := cmdtest.Works(t, "job", "submit", "--wait", "5m", "--name", "j", "--data",
		cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1), "--algorithm", "sa-bfgs", "--server", server)
	if want := "coppice job watch j --server " + server; !strings.Contains(out, want) {
		t.Errorf("%q does not advise %q", out, want)
	}
	for _, at := range []string{server, server + "/", address} {
		if out := cmdtest.Works(t, "job", "list", "--server", at); !strings.Contains(out, "sa-bfgs") {
			t.Errorf("%s: %s", at, out)
		}
	}
	if out := cmdtest.Works(t, "audit", "--server", server); !strings.Contains(out, "POST /v1/jobs ") ||
		strings.Contains(out, "/ml/") {
		t.Errorf("audit prints %s", out)
	}
	if e := cmdtest.Run(t, "job", "list", "--server", "http://"+address+"/other"); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "the API below /ml/coppice: replace /other by it in --server") {
		t.Errorf("another path: exit code %d: %s", e.Code, e.Stderr)
	}
	for _, prefix := range []string{"coppice", "/", "/v1", "/a//b", "/a b", "/a/", "/.."} {
		if e := cmdtest.Run(t, "coordinator", "--dir", filepath.Join(dir, "x"), "--http-prefix",
			prefix); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--http-prefix") {
			t.Errorf("--http-prefix %s: exit code %d: %s", prefix, e.Code, e.Stderr)
		}
	}
	if e := cmdtest.Run(t, "job", "list", "--server", "https://h/v1"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "--server") {
		t.Errorf("the path of the API: exit code %d: %s", e.Code, e.Stderr)
	}
}
