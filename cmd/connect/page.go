package connect

import (
	"cmp"
	"context"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/page"
)

// PageURL returns the address of a view of the page of a cluster, which must answer. It has the public URL of the
// cluster if there is one. path is the path below the root of the page.
func PageURL(ctx context.Context, cl *client.Client, path string) (string, error) {
	c, err := cl.Cluster(ctx)
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.TrimSuffix(c.PublicURL, "/"), cl.Servers()[0]) + page.Root + path, nil
}

// NotePage says on stderr where the page shows something that a command has made. It says nothing to programs, and
// nothing if the cluster does not answer.
func NotePage(a *cli.App, cl *client.Client, path string) {
	if a.Output != cli.Text || a.ForLibrary() {
		return
	}
	if address, err := PageURL(a.Ctx, cl, path); err == nil {
		a.Note("on the page: %s", address)
	}
}
