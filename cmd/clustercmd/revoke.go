package clustercmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// certsRevokeCmd revokes a certificate.
type certsRevokeCmd struct {
	Certificate string `arg:"" placeholder:"FILE|SERIAL" help:"File or folder of the certificate, or its serial number as coppice certs show prints it."`

	connect.ChangeFlags
}

// Help implements kong's HelpProvider.
func (certsRevokeCmd) Help() string {
	return `The coordinators refuse the certificate and cut its connections within two seconds. A file also tells whose certificate
it is, and when it ends. A day after that, the cluster forgets it. The command needs the role admin and another
certificate than the one to revoke.`
}

// Run implements `coppice certs revoke`.
func (c *certsRevokeCmd) Run(a *cli.App) error {
	r, err := certificateOf(c.Certificate)
	if err != nil {
		return err
	}
	return connect.Ask(a, c, func(cl *client.Client) (*protocol.Revocation, error) {
		return cl.Certificates().Revoke(a.Ctx, r)
	}, func(w io.Writer, revoked *protocol.Revocation) {
		fmt.Fprintf(w, "certificate %s of %s is revoked\n", revoked.Serial, cmp.Or(revoked.Identity, "an unknown owner"))
	})
}

// certsRevokedCmd lists the revoked certificates.
type certsRevokedCmd struct{ connect.ServerFlags }

// Run implements `coppice certs revoked`.
func (c *certsRevokedCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) ([]protocol.Revocation, error) {
		return cl.Certificates().List(a.Ctx)
	}, func(w io.Writer, list []protocol.Revocation) {
		t := cli.NewTable(w, []string{"serial", "identity", "revoked", "ends"})
		for _, r := range list {
			t.AppendRow(cli.Row(r.Serial, cmp.Or(r.Identity, "-"), cli.Time(r.Time), cli.Time(r.Until)))
		}
		t.Render()
	})
}

// certificateOf describes the certificate in a file or a folder, or the one with a serial number.
func certificateOf(text string) (r protocol.Revocation, err error) {
	info, err := os.Stat(text)
	if errors.Is(err, os.ErrNotExist) {
		serial := strings.TrimLeft(strings.ToLower(strings.ReplaceAll(text, ":", "")), "0")
		if !protocol.CheckSerial(serial) {
			return r, cli.Usagef("%q is neither a file nor a serial number of at most %d hexadecimal digits", text, protocol.MaxSerial)
		}
		return protocol.Revocation{Serial: serial}, nil
	}
	if err == nil && info.IsDir() {
		text = filepath.Join(text, certs.CertFile)
	}
	list, err := certs.Read(text)
	if err != nil {
		return r, cli.Usage(err)
	}
	leaf := list[0]
	if _, err := certs.ParseIdentity(leaf.Identity); err != nil {
		return r, cli.Usagef("%s is no certificate of a process or a user of a cluster; to refuse an authority, delete it from every %s", text, certs.AuthorityFile)
	}
	return protocol.Revocation{Serial: leaf.Serial, Identity: leaf.Identity, Until: leaf.Until.Unix()}, nil
}
