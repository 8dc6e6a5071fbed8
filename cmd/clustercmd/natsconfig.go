package clustercmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

type certsNATSConfigCmd struct {
	Coordinators []string `name:"coordinator" required:"" placeholder:"ID,..." help:"Ids of the coordinators."`
	Workers      []string `name:"worker" placeholder:"NAME,..." help:"Names of the workers."`
	Name         string   `default:"coppice" placeholder:"NAME" help:"Name of the cluster in its certificates (default: coppice)."`
	TLSDir       string   `name:"tls-dir" default:"/etc/coppice" placeholder:"DIR" help:"Folder with the certificate of the NATS server, on its machine (default: /etc/coppice)."`
}

// Help implements kong's HelpProvider.
func (certsNATSConfigCmd) Help() string {
	return `Prints the blocks tls and authorization of the configuration of an external NATS server. They permit each coordinator and
worker the subjects that an embedded server would permit. The server needs a certificate from
coppice certs node NAME --role coordinator. Pools of workers need an embedded server: the names of their members are not known
in advance.

  coppice certs nats-config --coordinator a,b,c --worker w1,w2 > coppice.conf`
}

// Run implements `coppice certs nats-config`.
func (c *certsNATSConfigCmd) Run(a *cli.App) error {
	var ids []certs.Identity
	for _, id := range c.Coordinators {
		ids = append(ids, certs.Identity{Cluster: c.Name, Role: certs.Coordinator, Name: id})
	}
	for _, name := range c.Workers {
		ids = append(ids, certs.Identity{Cluster: c.Name, Role: certs.Worker, Name: name})
	}
	for _, id := range ids {
		if err := id.Check(); err != nil {
			return cli.Usage(err)
		}
	}
	return a.Print(natsConfigOf(c.TLSDir, ids), func(w io.Writer) { io.WriteString(w, natsConfigOf(c.TLSDir, ids).Text) })
}

// natsConfig is the configuration as the command prints it.
type natsConfig struct {
	Text string `json:"text"`
}

// natsConfigOf writes the configuration of a NATS server. A user is the URI in a certificate.
// The token of a subject that names the cluster is a wildcard: the server serves one cluster,
// and its id is drawn when it begins.
func natsConfigOf(dir string, ids []certs.Identity) natsConfig {
	var b strings.Builder
	fmt.Fprintf(&b, "tls {\n  cert_file: %q\n  key_file: %q\n  ca_file: %q\n  verify_and_map: true\n  handshake_first: true\n}\nauthorization {\n  users = [\n",
		dir+"/"+certs.CertFile, dir+"/"+certs.KeyFile, dir+"/"+certs.AuthorityFile)
	subjects := protocol.Subjects{Cluster: "*"}
	for _, id := range ids {
		r := rights.OnNATS(subjects, rights.Role(id.Role), id.Name, id.Name)
		fmt.Fprintf(&b, "    {\n      user: %q\n      permissions: {\n        publish: { allow: %s }\n        subscribe: { allow: %s }\n", id, quotedList(r.Publish), quotedList(r.Subscribe))
		if r.Answer > 0 {
			fmt.Fprintf(&b, "        allow_responses: { max: 1, expires: %q }\n", r.Answer)
		}
		b.WriteString("      }\n    }\n")
	}
	b.WriteString("  ]\n}\n")
	return natsConfig{b.String()}
}

// quotedList writes a list of texts for a configuration of NATS.
func quotedList(list []string) string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, strconv.Quote(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
