package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestOwnerColumn: a list has a column of owners only if something in it has an owner.
func TestOwnerColumn(t *testing.T) {
	for _, c := range []struct {
		owners []string
		want   string
	}{{[]string{"", ""}, "name\na\nb\n"}, {[]string{"", "ana"}, "name  owner\na     -\nb     ana\n"}, {nil, "name\n"}} {
		var b bytes.Buffer
		header, owned := ownerColumn([]string{"name"}, len(c.owners), func(i int) string { return c.owners[i] })
		table := newTable(&b, header)
		for i := range c.owners {
			table.AppendRow(owned(i, rowOf(string(rune('a'+i)))))
		}
		if table.Render(); b.String() != c.want {
			t.Errorf("%q:\n%s", c.owners, b.String())
		}
	}
}

// TestTokenState: what the list says of a token.
func TestTokenState(t *testing.T) {
	now := time.Now().Unix()
	for want, token := range map[string]protocol.Token{
		"valid": {}, "valid ": {Expires: now + 100}, "expired": {Expires: now - 1}, "revoked at": {Expires: now - 1, Revoked: 5},
	} {
		if got := tokenState(&token); !strings.HasPrefix(got, strings.TrimSpace(want)) {
			t.Errorf("%+v: %s, want %s", token, got, want)
		}
	}
}

// TestWrongTokens: a wrong command line is refused before a cluster is asked.
func TestWrongTokens(t *testing.T) {
	for _, args := range [][]string{
		{"create", "a b", "--role", "read"}, {"create", "ana"}, {"create", "ana", "--role", "root"}, {"create", "ana", "--role", "read", "--expires", "soon"},
		{"revoke", "0123"}, {"revoke", "coppice_0123456789abcdef_x"}, {"revoke"},
	} {
		if e := coppice(t, append([]string{"token"}, args...)...); e.code != exitUsage {
			t.Errorf("%v: exit code %d: %s", args, e.code, e.stderr)
		}
	}
	if e := coppice(t, "job", "list", "--mine", "--owner", "ana"); e.code != exitUsage || !strings.Contains(e.stderr, "--owner and --mine") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
}
