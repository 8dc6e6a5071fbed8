package clustercmd

import (
	"errors"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
)

// ContextCmd has the contexts of a user.
type ContextCmd struct {
	Set    contextSetCmd    `cmd:"" help:"Make a context, or replace one."`
	Use    contextUseCmd    `cmd:"" help:"Make a context the current one."`
	List   contextListCmd   `cmd:"" help:"List the contexts."`
	Delete contextDeleteCmd `cmd:"" help:"Delete a context."`
}

// Help implements kong's HelpProvider.
func (ContextCmd) Help() string {
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
	CAFile    string   `name:"ca-file" placeholder:"FILE" help:"File with the certificate authorities (CA) of the cluster: ca.crt, which coppice certs init and coppice certs cluster make."`
	TokenFile string   `name:"token-file" placeholder:"FILE" help:"File with a token from coppice token create."`
	TLSDir    string   `name:"tls-dir" placeholder:"DIR" help:"Folder with a certificate: ca.crt, tls.crt and tls.key. It takes the place of --ca-file and --token-file."`
}

// Help implements kong's HelpProvider.
func (contextSetCmd) Help() string {
	return `The files must exist and be valid. The context becomes the current one if there is none.`
}

// Run implements `coppice context set`.
func (c *contextSetCmd) Run(a *cli.App) error {
	made, err := connect.NewContext(contexts.Context{Name: c.Name, Server: c.Server, CA: c.CAFile, TokenFile: c.TokenFile,
		TLSDir: c.TLSDir})
	if err != nil {
		return err
	}
	return changeContexts(a, func(f *contexts.File) error {
		if f.Current == "" {
			f.Current = c.Name
		}
		if err := f.Set(made); err != nil {
			return cli.Usage(err)
		}
		return nil
	})
}

type contextUseCmd struct {
	Name string `arg:"" placeholder:"NAME" help:"Name of the context."`
}

// Run implements `coppice context use`.
func (c *contextUseCmd) Run(a *cli.App) error {
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
func (c *contextDeleteCmd) Run(a *cli.App) error {
	current := false
	err := changeContexts(a, func(f *contexts.File) error {
		current = f.Current == c.Name
		return f.Delete(c.Name)
	})
	if err == nil && current {
		a.Note("note: %s was the current context, and there is none now; choose one with coppice context use NAME", c.Name)
	}
	return err
}

type contextListCmd struct{}

// Run implements `coppice context list`.
func (contextListCmd) Run(a *cli.App) error {
	f, err := contexts.Load(contexts.DefaultPath())
	if err != nil {
		return cli.Usage(err)
	}
	return showContexts(a, f)
}

// changeContexts changes the file with the contexts, and lists them.
func changeContexts(a *cli.App, change func(*contexts.File) error) error {
	path := contexts.DefaultPath()
	if path == "" {
		return errors.New("the folder of the user is not known; set HOME or XDG_CONFIG_HOME")
	}
	f, err := contexts.Load(path)
	if err != nil {
		return cli.Usage(err)
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

func showContexts(a *cli.App, f *contexts.File) error {
	list := []shownContext{}
	for _, c := range f.Contexts {
		list = append(list, shownContext{c, c.Name == f.Current})
	}
	return a.Print(list, func(w io.Writer) {
		cli.WriteTable(w, []string{"context", "current", "server", "identity"}, list, func(c shownContext) []string {
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
			return []string{c.Name, current, strings.Join(c.Server, ","), identity}
		})
	})
}
