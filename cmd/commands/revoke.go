package commands

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// certsRevokeCmd revokes a certificate.
type certsRevokeCmd struct {
	Certificate string `arg:"" placeholder:"FILE|SERIAL" help:"File or folder of the certificate, or its serial number as coppice certs show prints it."`

	changeFlags
}

// Help implements kong's HelpProvider.
func (certsRevokeCmd) Help() string {
	return `The coordinators refuse the certificate and cut its connections within two seconds. A file also tells whose certificate
it is, and when it ends. A day after that, the cluster forgets it. The command needs the role admin and another
certificate than the one to revoke.`
}

// Run implements `coppice certs revoke`.
func (c *certsRevokeCmd) Run(a *app) error {
	r, err := certificateOf(c.Certificate)
	if err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	revoked, err := client.Revoke(a.ctx, cl, r)
	if err != nil {
		return err
	}
	return a.print(revoked, func(w io.Writer) {
		fmt.Fprintf(w, "certificate %s of %s is revoked\n", revoked.Serial, cmp.Or(revoked.Identity, "an unknown owner"))
	})
}

// certsRevokedCmd lists the revoked certificates.
type certsRevokedCmd struct{ serverFlags }

// Run implements `coppice certs revoked`.
func (c *certsRevokedCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := client.Revocations(a.ctx, cl)
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		t := newTable(w, []string{"serial", "identity", "revoked", "ends"})
		for _, r := range list {
			t.AppendRow(rowOf(r.Serial, cmp.Or(r.Identity, "-"), clock(r.Time), clock(r.Until)))
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
			return r, usagef("%q is neither a file nor a serial number of at most %d hexadecimal digits", text, protocol.MaxSerial)
		}
		return protocol.Revocation{Serial: serial}, nil
	}
	if err == nil && info.IsDir() {
		text = filepath.Join(text, certs.CertFile)
	}
	list, err := certs.Read(text)
	if err != nil {
		return r, usageOf(err)
	}
	leaf := list[0]
	if _, err := certs.ParseIdentity(leaf.Identity); err != nil {
		return r, usagef("%s is no certificate of a process or a user of a cluster; to refuse an authority, delete it from every %s", text, certs.AuthorityFile)
	}
	return protocol.Revocation{Serial: leaf.Serial, Identity: leaf.Identity, Until: leaf.Until.Unix()}, nil
}
