package clustercmd

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestTokenState: what the list says of a token.
func TestTokenState(t *testing.T) {
	now := time.Now().Unix()
	for _, c := range []struct {
		token protocol.Token
		state string
		since int64
	}{
		{protocol.Token{}, "valid", 0}, {protocol.Token{Expires: now + 100}, "valid", 0}, {protocol.Token{Expires: now - 1},
			"expired", now - 1},
		{protocol.Token{Expires: now - 1, Revoked: 5}, "revoked", 5},
	} {
		if state, since := tokenState(&c.token); state != c.state || since != c.since {
			t.Errorf("%+v: %s since %d, want %s since %d", c.token, state, since, c.state, c.since)
		}
	}
}

// TestWrongTokens: a wrong command line is refused before a cluster is asked.
func TestWrongTokens(t *testing.T) {
	for _, args := range [][]string{
		{"create", "a b", "--role", "read"}, {"create", "ana"}, {"create", "ana", "--role", "root"},
		{"create", "ana", "--role", "read", "--expires", "soon"},
		{"revoke", "0123"}, {"revoke", "coppice_0123456789abcdef_x"}, {"revoke"},
	} {
		if e := cmdtest.Run(t, append([]string{"token"}, args...)...); e.Code != cli.ExitUsage {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
	for want, args := range map[string][]string{
		"stands for an unknown caller": {"-", "--role", "submit"}, "--quota 3": {"ana", "--role", "read", "--quota", "3"},
		"too large": {"ana", "--role", "read", "--expires", "1000000d"},
	} {
		if e := cmdtest.Run(t, append([]string{"token", "create"}, args...)...); e.Code != cli.ExitUsage ||
			!strings.Contains(e.Stderr, want) {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
	path := cmdtest.Write(t, t.TempDir(), "ana.token", "mine")
	e := cmdtest.Run(t, "token", "create", "ana", "--role", "read", "--out", path, "--server", "127.0.0.1:1",
		"--wait", "0")
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, path+": the file exists") ||
		cmdtest.Read(t, path) != "mine" {
		t.Errorf("a file that exists: exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "job", "list", "--mine", "--owner", "ana"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "--owner and --mine") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
}
