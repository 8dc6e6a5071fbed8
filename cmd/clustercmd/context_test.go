package clustercmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// TestWrongIdentity: what does not fit together is refused with exit code 2, and no error has a secret.
func TestWrongIdentity(t *testing.T) {
	dir := t.TempDir()
	authority := certtest.New(t)
	folder := authority.Folder(certs.User, "ana")
	clitest.Contexts(t, contexts.Context{Name: "lab", Server: []string{"127.0.0.1:1"}},
		contexts.Context{Name: "safe", Server: []string{"127.0.0.1:1"}, TLSDir: folder})
	ca := filepath.Join(folder, certs.AuthorityFile)
	text, _, _ := access.NewToken()
	file := func(name, text string, mode os.FileMode) string {
		path := cmdtest.Write(t, dir, name, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", text+"\n", 0o600)
	open := file("open", text, 0o604)
	broken := file("broken", text+"x", 0o600)
	two := file("two", text+"\n"+text, 0o600)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--token-file", good}, "never sent without TLS"},
		{[]string{"--token-file", good, "--ca-file", ca, "--server", "http://127.0.0.1:1"}, "leave out http://"},
		{[]string{"--token-file", good, "--tls-dir", folder}, "--tls-dir excludes --token-file"},
		{[]string{"--ca-file", ca, "--tls-dir", folder}, "--tls-dir excludes"},
		{[]string{"--token-file", open, "--ca-file", ca}, "chmod 600 " + open},
		{[]string{"--token-file", broken, "--ca-file", ca}, broken + ": the text is not a token"},
		{[]string{"--token-file", two, "--ca-file", ca}, two + ": the text is not a token"},
		{[]string{"--token-file", filepath.Join(dir, "none"), "--ca-file", ca}, "no such file"},
		{[]string{"--token-file", good, "--ca-file", filepath.Join(folder, certs.CertFile)}, "--ca-file: "},
		{[]string{"--context", "prod"}, `no context "prod"; coppice context list`},
		{[]string{"--context", "safe", "--server", "h:1,http://127.0.0.1:1"},
			"--server http://127.0.0.1:1: http uses no TLS, but the context safe asks for TLS"},
		{[]string{"--context", "safe", "--server", "http://127.0.0.1:1", "--tls-dir", folder},
			"but --tls-dir and --ca-file ask for TLS"},
	} {
		e := cmdtest.Run(t, append([]string{"cluster"}, c.args...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, c.want) ||
			strings.Contains(e.Stdout+e.Stderr, text[30:60]) {
			t.Errorf("%v: exit code %d: %s; want %s", c.args, e.Code, e.Stderr, c.want)
		}
	}
	t.Setenv("COPPICE_CONTEXT", "nope")
	if e := cmdtest.Run(t, "cluster"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "coppice: COPPICE_CONTEXT: ") {
		t.Errorf("a variable: exit code %d: %s", e.Code, e.Stderr)
	}
	for _, args := range [][]string{
		{"worker", "--join", "127.0.0.1:1", "--dir", filepath.Join(dir, "w"), "--listen", "127.0.0.1:0",
			"--metrics-token-file", good},
		// no --listen
		{"worker", "--join", "127.0.0.1:1", "--dir", filepath.Join(dir, "w"), "--tls-dir", folder, "--metrics-token-file",
			file("scrape", text, 0o600)},
		{"worker", "--join", "127.0.0.1:1", "--dir", filepath.Join(dir, "w"), "--tls-dir", folder, "--listen", "127.0.0.1:0",
			"--metrics-token-file", file("short", "short", 0o600)},
	} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--metrics-token-file") ||
			strings.Contains(e.Stderr, text[30:60]) {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
}

// TestContextCommands: contexts are set, listed, used and deleted. Paths become absolute, and a context
// that cannot be used is refused.
func TestContextCommands(t *testing.T) {
	f := clitest.Contexts(t)
	dir := t.TempDir()
	t.Chdir(dir)
	authority := certtest.New(t)
	folder := authority.Folder(certs.User, "ana")
	text, _, _ := access.NewToken()
	if err := os.WriteFile("ana.token", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmdtest.Works(t, "context", "set", "prod", "--server", "h", "--ca-file", filepath.Join(folder, certs.AuthorityFile),
		"--token-file", "ana.token")
	var list []shownContext
	cmdtest.JSON(t, &list, "context", "set", "lab", "--server", "[::1]:7100,h2:7", "--tls-dir", folder)
	want := []shownContext{
		{contexts.Context{Name: "lab", Server: []string{"[::1]:7100", "h2:7"}, TLSDir: folder}, false},
		{contexts.Context{Name: "prod", Server: []string{"h:7100"}, CA: filepath.Join(folder, certs.AuthorityFile),
			TokenFile: filepath.Join(dir, "ana.token")}, true},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if b, err := os.ReadFile(f.Path); err != nil || strings.Contains(string(b), text) {
		t.Errorf("%v\n%s", err, b)
	}
	if out := cmdtest.Works(t, "context", "use", "lab"); !strings.Contains(out,
		"yes      [::1]:7100,h2:7  certificate in "+folder) {
		t.Error(out)
	}
	if e := cmdtest.Run(t, "context", "use", "nope"); e.Code != cli.ExitFailed ||
		!strings.HasSuffix(e.Stderr, "coppice context set makes one\n") {
		t.Errorf("an unknown context: exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "context", "delete", "lab"); e.Code != cli.ExitOK ||
		!strings.Contains(e.Stderr, "note: lab was the current context") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	cmdtest.JSON(t, &list, "context", "list")
	if len(list) != 1 || list[0].Current {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{cli.ExitFailed, []string{"use", "lab"}}, {cli.ExitFailed, []string{"delete", "lab"}},
		{cli.ExitUsage, []string{"set", "a b", "--server", "h"}},
		{cli.ExitUsage, []string{"set", "x", "--server", "h", "--token-file", "ana.token"}},
		{cli.ExitUsage, []string{"set", "x", "--server", "h", "--tls-dir", dir}},
		{cli.ExitUsage, []string{"set", "x"}},
	} {
		if e := cmdtest.Run(t, append([]string{"context"}, c.args...)...); e.Code != c.code {
			t.Errorf("%v: exit code %d: %s", c.args, e.Code, e.Stderr)
		}
	}
	if err := os.Chmod(f.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cluster"}, {"context", "list"}, {"context", "use", "prod"},
		{"context", "delete", "prod"}} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "chmod 600") {
			t.Errorf("an open file: %v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
}
