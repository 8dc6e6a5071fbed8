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

// TestPublicURL: commands reach a coordinator below the path of its public URL, and what they advise has the path. The
// page's address begins with the URL.
func TestPublicURL(t *testing.T) {
	dir, address := t.TempDir(), testkit.FreeAddress(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 1)
	go func() {
		ends <- cmdtest.RunContext(ctx, "coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+address,
			"--public-url", "https://Example.org/ml/coppice/")
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
	if out := cmdtest.Works(t, "cluster", "--server", server, "-o", "json"); !strings.Contains(out,
		`"https://example.org/ml/coppice"`) {
		t.Errorf("the cluster has no public URL: %s", out)
	}
	for _, wrong := range []string{"coppice", "/coppice", "https://h/v1", "https://h/a//b", "https://h/a b", "ftp://h",
		"https://h/ui/x", "https://h/..", "https://", "https://h:x", "https://u:p@h", "https://h?x=1", "https://h#x",
		"https:h"} {
		if e := cmdtest.Run(t, "coordinator", "--dir", filepath.Join(dir, "x"), "--public-url",
			wrong); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--public-url") {
			t.Errorf("--public-url %s: exit code %d: %s", wrong, e.Code, e.Stderr)
		}
	}
	if e := cmdtest.Run(t, "job", "list", "--server", "https://h/v1"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "--server") {
		t.Errorf("the path of the API: exit code %d: %s", e.Code, e.Stderr)
	}
}
