package connect

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
)

// TestPrecedence: a flag comes before a variable, a variable before a context. A context on the command
// line comes before variables.
func TestPrecedence(t *testing.T) {
	f := clitest.Contexts(t,
		contexts.Context{Name: "lab", Server: []string{"lab:1"}, TLSDir: "/lab"},
		contexts.Context{Name: "prod", Server: []string{"p:1", "q:2"}, CA: "/prod/ca", TokenFile: "/prod/token"},
	)
	type env = map[string]string
	for _, c := range []struct {
		name    string
		current string
		env     env
		args    []string
		want    route
	}{
		{"nothing", "", nil, nil, route{}},
		{"the current context", "prod", nil, nil, route{server: []string{"p:1", "q:2"}, ca: "/prod/ca",
			token: "/prod/token"}},
		{"a variable names a context", "prod", env{"CONTEXT": "lab"}, nil, route{server: []string{"lab:1"}, folder: "/lab",
			explicit: true}},
		{"a flag names a context", "prod", env{"CONTEXT": "prod", "SERVER": "v:1", "TLS_DIR": "/v"},
			[]string{"--context", "lab"}, route{server: []string{"lab:1"}, folder: "/lab", explicit: true}},
		{"variables", "prod", env{"SERVER": "v:1", "TOKEN_FILE": "/v/token"}, nil,
			route{server: []string{"v:1"}, ca: "/prod/ca", token: "/v/token", explicit: true}},
		{"a certificate in a variable", "prod", env{"TLS_DIR": "/v"}, nil, route{server: []string{"p:1", "q:2"},
			folder: "/v"}},
		{"flags", "lab", env{"SERVER": "v:1", "TLS_DIR": "/v"}, []string{"--server", "f:1", "--token-file", "/f", "--ca-file",
			"/fca"}, route{server: []string{"f:1"}, ca: "/fca", token: "/f", explicit: true}},
		{"a server and a context", "", nil, []string{"--server", "f:1", "--context", "prod"},
			route{server: []string{"f:1"}, ca: "/prod/ca", token: "/prod/token", explicit: true}},
		{"authorities and a certificate", "lab", env{"CA_FILE": "/v"}, nil, route{server: []string{"lab:1"}, folder: "/lab"}},
	} {
		f.Current = c.current
		if err := f.Save(); err != nil {
			t.Fatal(err)
		}
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv("COPPICE_"+name, value)
			}
			if diff := cmp.Diff(c.want, routeOf(t, c.args), cmp.AllowUnexported(route{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// routes is a grammar with one command, which finds its cluster.
type routes struct {
	cli.Globals
	Show routeCmd `cmd:""`
}

type routeCmd struct {
	ServerFlags
	found route
}

func (c *routeCmd) Run(a *cli.App) (err error) {
	c.found, err = c.route(a)
	return err
}

// routeOf returns how a command with flags reaches its cluster.
func routeOf(t *testing.T, flags []string) route {
	t.Helper()
	var g routes
	var notes strings.Builder
	if code := cli.Run(t.Context(), &g, nil, append([]string{"show"}, flags...), nil, io.Discard,
		&notes); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, &notes)
	}
	return g.Show.found
}
