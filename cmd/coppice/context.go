package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// tokenFlags name the token of a user, and the authorities of a cluster.
type tokenFlags struct {
	TokenFile string `name:"token-file" seldom:"" placeholder:"FILE" group:"cluster" help:"File with a token from coppice token create. It takes the place of --tls-dir, and needs --ca-file."`
	CAFile    string `name:"ca-file" seldom:"" placeholder:"FILE" group:"cluster" help:"File with the authorities of the cluster, ca.crt from coppice certs init. The command then connects with TLS."`
}

// where is how a command reaches a cluster.
type where struct {
	server            []string
	ca, token, folder string // paths
	explicit          bool   // true if the user named the servers for this command, or its context
}

// choose joins what flags, variables and a context say, the strongest first. A certificate and a token
// exclude each other: the first level with one of them decides. A certificate comes with authorities.
func choose(levels ...where) (at where, err error) {
	for _, l := range levels {
		if l.folder != "" && (l.token != "" || l.ca != "") {
			return at, usagef("--tls-dir excludes --token-file and --ca-file: the folder has a certificate and ca.crt; leave one out")
		}
		if len(at.server) == 0 {
			at.server, at.explicit = l.server, l.explicit
		}
		if at.folder == "" && at.token == "" {
			at.folder, at.token = l.folder, l.token
		}
		if at.ca == "" {
			at.ca = l.ca
		}
	}
	if at.folder != "" {
		at.ca = ""
	}
	if at.token != "" && at.ca == "" {
		return at, usagef("--token-file %s: a token is never sent in the clear; name the authorities of the cluster with --ca-file, a copy of ca.crt", at.token)
	}
	return at, nil
}

// where finds the cluster of a command: by a flag, then by a variable or the file of --config, then by a
// context. If --context is on the command line, variables do not count.
func (s *serverFlags) where(a *app) (where, error) {
	var flags, outside where
	for _, f := range []struct {
		name  string
		given string
		into  func(*where) *string
	}{
		{"token-file", s.TokenFile, func(w *where) *string { return &w.token }},
		{"ca-file", s.CAFile, func(w *where) *string { return &w.ca }},
		{"tls-dir", s.TLSDir, func(w *where) *string { return &w.folder }},
	} {
		level := &outside
		if a.given[f.name] {
			level = &flags
		}
		*f.into(level) = f.given
	}
	flags.explicit, outside.explicit = true, true
	if a.given["server"] {
		flags.server = s.Server
	} else {
		outside.server = s.Server
	}
	file, err := contexts.Load(contexts.DefaultPath())
	if err != nil {
		return where{}, usageError{err}
	}
	levels := []where{flags, outside}
	if a.given["context"] {
		levels = levels[:1]
	}
	name := s.Context
	if name == "" {
		name = file.Current
	}
	if name != "" {
		c, err := file.Find(name)
		if err != nil {
			return where{}, usagef("--context: %w", err)
		}
		levels = append(levels, where{server: c.Server, ca: c.CA, token: c.TokenFile, folder: c.TLSDir, explicit: s.Context != ""})
	}
	return choose(levels...)
}

// named returns the flag on the command line that names the cluster, with its value, or nil.
func (s *serverFlags) named(a *app) []string {
	switch {
	case a.given["server"]:
		return []string{"--server", strings.Join(s.Server, ",")}
	case a.given["context"]:
		return []string{"--context", s.Context}
	}
	return nil
}

// client returns a client of the cluster, and its certificates. Nobody watches these yet.
func (w *where) client() (*client.Client, *certs.Source, error) {
	servers := strings.Join(withPorts(w.server), ",")
	if servers == "" {
		servers = defaultServer
	}
	var source *certs.Source
	var err error
	switch {
	case w.folder != "":
		if source, err = certs.Open(w.folder, nil); err != nil {
			return nil, nil, usagef("--tls-dir: %w", err)
		}
	case w.ca != "":
		if source, err = certs.Trust(w.ca); err != nil {
			return nil, nil, usagef("--ca-file: %w", err)
		}
	}
	var c *client.Client
	if w.token != "" {
		token, failed := readToken(w.token)
		if failed != nil {
			return nil, nil, usagef("--token-file: %w", failed)
		}
		c, err = client.NewWithToken(servers, source, token)
	} else {
		c, err = client.NewWith(servers, source)
	}
	if err != nil {
		return nil, nil, usagef("--server: %w", err)
	}
	return c, source, nil
}

const (
	maxTokenFile = 4 << 10
	// strangers are the permissions of users who are neither the owner nor in the group of a file.
	strangers = 0o007
)

// readToken reads the token in a file. Errors do not show the content.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&strangers != 0 {
		return "", fmt.Errorf("%s: the mode is %04o, but other users must not use a token; run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if _, _, err := access.ParseToken(text); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// contextCmd has the contexts of a user.
type contextCmd struct {
	Set    contextSetCmd    `cmd:"" help:"Make a context, or replace one."`
	Use    contextUseCmd    `cmd:"" help:"Make a context the current one."`
	List   contextListCmd   `cmd:"" help:"List the contexts."`
	Delete contextDeleteCmd `cmd:"" help:"Delete a context."`
}

// Help implements kong's HelpProvider.
func (contextCmd) Help() string {
	return `A context names a cluster: its addresses, and the files that prove who you are. The file is contexts.yaml in the folder
coppice of $XDG_CONFIG_HOME, or of ~/.config. It has paths and no secrets, and its mode must be 0600.

Commands use the first of these that says something: a flag, then a variable such as COPPICE_SERVER, then the context,
then the default. The context is the one of --context or COPPICE_CONTEXT, or else the current one. With --context on the
command line, variables do not count.

  coppice context set prod --server 10.0.0.1:7100 --ca-file ca.crt --token-file ana.token
  coppice job list --context prod`
}

type contextSetCmd struct {
	Name      string   `arg:"" placeholder:"NAME" help:"Name of the context."`
	Server    []string `required:"" placeholder:"HOST[:PORT]" help:"HTTP addresses of coordinators; one is enough."`
	CAFile    string   `name:"ca-file" placeholder:"FILE" help:"File with the authorities of the cluster, ca.crt from coppice certs init."`
	TokenFile string   `name:"token-file" placeholder:"FILE" help:"File with a token from coppice token create."`
	TLSDir    string   `name:"tls-dir" placeholder:"DIR" help:"Folder with a certificate: ca.crt, tls.crt and tls.key. It takes the place of --ca-file and --token-file."`
}

// Help implements kong's HelpProvider.
func (contextSetCmd) Help() string {
	return `The files must exist and be valid. The context becomes the current one if there is none.`
}

// Run implements `coppice context set`.
func (c *contextSetCmd) Run(a *app) error {
	made := contexts.Context{Name: c.Name, Server: withPorts(c.Server), CA: c.CAFile, TokenFile: c.TokenFile, TLSDir: c.TLSDir}
	for _, path := range []*string{&made.CA, &made.TokenFile, &made.TLSDir} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	at, err := choose(where{server: made.Server, ca: made.CA, token: made.TokenFile, folder: made.TLSDir})
	if err != nil {
		return err
	}
	cl, _, err := at.client()
	if err != nil {
		return err
	}
	cl.Close()
	return changeContexts(a, func(f *contexts.File) error {
		if f.Current == "" {
			f.Current = c.Name
		}
		if err := f.Set(made); err != nil {
			return usageError{err}
		}
		return nil
	})
}

type contextUseCmd struct {
	Name string `arg:"" placeholder:"NAME" help:"Name of the context."`
}

// Run implements `coppice context use`.
func (c *contextUseCmd) Run(a *app) error {
	return changeContexts(a, func(f *contexts.File) error {
		_, err := f.Find(c.Name)
		f.Current = c.Name
		return err
	})
}

type contextDeleteCmd struct {
	Name string `arg:"" placeholder:"NAME" help:"Name of the context. The files that it names stay."`
}

// Run implements `coppice context delete`.
func (c *contextDeleteCmd) Run(a *app) error {
	return changeContexts(a, func(f *contexts.File) error { return f.Delete(c.Name) })
}

type contextListCmd struct{}

// Run implements `coppice context list`.
func (contextListCmd) Run(a *app) error {
	f, err := contexts.Load(contexts.DefaultPath())
	if err != nil {
		return err
	}
	return showContexts(a, f)
}

// changeContexts changes the file with the contexts, and lists them.
func changeContexts(a *app, change func(*contexts.File) error) error {
	path := contexts.DefaultPath()
	if path == "" {
		return errors.New("the folder of the user is not known; set HOME or XDG_CONFIG_HOME")
	}
	f, err := contexts.Load(path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	if err := f.Save(); err != nil {
		return err
	}
	return showContexts(a, f)
}

// shownContext is a context as the commands print it.
type shownContext struct {
	contexts.Context

	Current bool `json:"current"`
}

func showContexts(a *app, f *contexts.File) error {
	list := []shownContext{}
	for _, c := range f.Contexts {
		list = append(list, shownContext{c, c.Name == f.Current})
	}
	return a.print(list, func(w io.Writer) {
		t := newTable(w, []string{"context", "current", "server", "identity"})
		for _, c := range list {
			current, identity := "", "-"
			if c.Current {
				current = "yes"
			}
			switch {
			case c.TokenFile != "":
				identity = "token in " + c.TokenFile
			case c.TLSDir != "":
				identity = "certificate in " + c.TLSDir
			}
			t.AppendRow(rowOf(c.Name, current, strings.Join(c.Server, ","), identity))
		}
		t.Render()
	})
}
