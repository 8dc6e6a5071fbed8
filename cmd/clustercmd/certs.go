package clustercmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// CertsCmd makes and shows the certificates of a cluster.
type CertsCmd struct {
	Cluster certsClusterCmd `cmd:"" help:"Issue all certificates of a cluster. The authority is made if there is none."`
	Init    certsInitCmd    `cmd:"" help:"Make an authority for a cluster, and the certificate of its first admin."`
	Node    certsNodeCmd    `cmd:"" help:"Issue the certificate of a coordinator, a worker, a pool of workers, a model server or a reverse proxy."`
	Client  certsClientCmd  `cmd:"" help:"Issue the certificate of a user."`
	Show    certsShowCmd    `cmd:"" help:"Show the certificates in a folder: who, with which hosts, until when, and signed by whom."`
	Check   certsCheckCmd   `cmd:"" help:"Check that a folder can be used with --tls-dir."`

	NATSConfig certsNATSConfigCmd `cmd:"" name:"nats-config" help:"Print the configuration of an external NATS server with the rights of each process."`
	Revoke     certsRevokeCmd     `cmd:"" help:"Have a cluster refuse a certificate from now on, and cut its connections."`
	Revoked    certsRevokedCmd    `cmd:"" help:"List the certificates that a cluster refuses."`
}

// Help implements kong's HelpProvider.
func (CertsCmd) Help() string {
	return `An authority signs the certificates of one cluster. Its key stays in the folder of the authority, and no coordinator
needs it. Each process gets a folder with ca.crt, tls.crt and tls.key, and is started with --tls-dir. For three hosts:

  coppice certs cluster --coordinators a=host1,b=host2,c=host3 --pools w
  scp -r certs/b certs/w host2:

To replace a certificate before its end, issue it again and copy the files. Running processes use it within ten seconds.`
}

// authorityFlags name the folder of an authority, and how long the certificates are valid that it issues.
type authorityFlags struct {
	Authority string    `name:"ca-dir" default:"certs" placeholder:"DIR" help:"Folder of the authority, which coppice certs init or coppice certs cluster makes (default: certs)."`
	Valid     units.Age `default:"90d" placeholder:"AGE" help:"How long the certificate is valid, such as 90d or 12h, from 1h to 3650d. It ends with the authority if that ends before (default: 90d)."`
}

// The bounds of --valid.
const (
	minValid = time.Hour
	maxValid = certs.AuthorityLife
)

// life returns how long certificates are valid.
func (f *authorityFlags) life() (time.Duration, error) {
	if d := time.Duration(f.Valid); d >= minValid && d <= maxValid {
		return d, nil
	}
	return 0, cli.Usagef("--valid: want an age from 1h to 3650d, got %v", time.Duration(f.Valid))
}

type certsClusterCmd struct {
	Coordinators []string `required:"" placeholder:"ID=HOST" help:"Ids of the coordinators. HOST is a name or an IP address of the machine, for programs that verify it, such as browsers and Prometheus. An id may be repeated with another host."`
	Pools        []string `placeholder:"NAME" help:"Pools of workers. The name is also a host in the certificate, for Prometheus."`
	Users        []string `default:"admin=admin" placeholder:"NAME=ROLE" help:"Users, each with the role admin, submit or read (default: admin=admin)."`
	Name         string   `default:"coppice" placeholder:"NAME" help:"Name of the cluster. Processes refuse certificates of another cluster (default: coppice)."`
	Out          string   `placeholder:"DIR" help:"Folder for the folders of the certificates (default: the folder of the authority)."`

	authorityFlags
}

// Help implements kong's HelpProvider.
func (certsClusterCmd) Help() string {
	return `Makes a folder for each coordinator, each pool and each user. If the folder of the authority has an authority, the command
uses it and replaces the certificates. Running processes use the new files within ten seconds.`
}

// Run implements `coppice certs cluster`.
func (c *certsClusterCmd) Run(a *cli.App) error {
	list, err := c.certificates()
	if err != nil {
		return err
	}
	life, err := c.life()
	if err != nil {
		return err
	}
	authority, err := certs.OpenAuthority(c.Authority)
	if errors.Is(err, os.ErrNotExist) {
		authority, err = certs.NewAuthority(c.Authority, c.Name)
	}
	if err != nil {
		return err
	}
	if authority.Cluster != c.Name {
		return cli.Usagef("--name %s: the authority in %s is of the cluster %s; give its name, or another --ca-dir", c.Name,
			c.Authority, authority.Cluster)
	}
	var shown []issued
	for _, one := range list {
		made, err := issue(authority, filepath.Join(cmp.Or(c.Out, c.Authority), one.id.Name), one.id, one.hosts, life)
		if err != nil {
			return err
		}
		shown = append(shown, *made)
	}
	return a.Print(shown, func(w io.Writer) {
		cli.WriteTable(w, []string{"folder", "identity", "until", "serial"}, shown, func(s issued) []string {
			return []string{s.Folder, s.Identity, s.Until.Format(time.RFC3339), s.Serial}
		})
	})
}

// certificate is what a certificate shall have.
type certificate struct {
	id    certs.Identity
	hosts []string
}

// certificates returns the certificates that the flags name.
func (c *certsClusterCmd) certificates() (list []*certificate, err error) {
	byName := make(map[string]*certificate)
	for _, flag := range []struct {
		name   string
		values []string
		role   certs.Role
		form   string // of what follows the name and =
	}{{"coordinators", c.Coordinators, certs.Coordinator, "HOST"}, {"pools", c.Pools, certs.Pool, ""},
		{"users", c.Users, certs.User, "ROLE"}} {
		for _, value := range flag.values {
			name, of, named := strings.Cut(value, "=")
			if flag.form != "" && (!named || of == "") {
				return nil, cli.Usagef("--%s %q: want NAME=%s", flag.name, value, flag.form)
			}
			id := certs.Identity{Cluster: c.Name, Role: flag.role, Name: name}
			switch flag.role {
			case certs.User:
				id.Rights = of
			case certs.Pool:
				id.Name = value
			}
			if err := id.Check(); err != nil {
				return nil, cli.Usagef("--%s %q: %w", flag.name, value, err)
			}
			one := byName[name]
			switch {
			case one == nil:
				one = &certificate{id: id}
				byName[name], list = one, append(list, one)
			case one.id != id:
				return nil, cli.Usagef("--%s %q: %s has the same name, and both need a folder with this name", flag.name,
					value, one.id)
			}
			if flag.role == certs.Coordinator {
				one.hosts = append(one.hosts, of)
			}
		}
	}
	return list, nil
}

// adminName is the name of the user of coppice certs init.
const adminName = "admin"

type certsInitCmd struct {
	Name string `default:"coppice" placeholder:"NAME" help:"Name of the cluster. Processes refuse certificates of another cluster (default: coppice)."`

	authorityFlags
}

// Help implements kong's HelpProvider.
func (certsInitCmd) Help() string {
	return `Writes ca.crt and ca.key, and the folder admin with the certificate of the first admin. An authority that exists is
never overwritten. Keep ca.key secret: with it, anybody can issue certificates of the cluster.`
}

// Run implements `coppice certs init`.
func (c *certsInitCmd) Run(a *cli.App) error {
	life, err := c.life()
	if err != nil {
		return err
	}
	authority, err := certs.NewAuthority(c.Authority, c.Name)
	if errors.Is(err, certs.ErrIdentity) {
		return cli.Usagef("--name: %w", err)
	}
	if err != nil {
		return err
	}
	return printIssued(a, authority, filepath.Join(c.Authority, adminName),
		certs.Identity{Role: certs.User, Name: adminName, Rights: adminName}, nil, life)
}

type certsNodeCmd struct {
	Name string   `arg:"" placeholder:"ID" help:"Id of the coordinator or the worker, or the name of the pool. It must be the process's --id; workers of a pool have ids that begin with the name of the pool and a dash."`
	Role string   `required:"" enum:"coordinator,worker,pool,serve,proxy" placeholder:"ROLE" help:"Role: coordinator, worker, pool, serve or proxy."`
	Host []string `placeholder:"HOST" help:"Names and IP addresses of the machine, for programs that verify them, such as browsers and Prometheus. Processes of Coppice do not need them (default: the hosts of the certificate that is replaced)."`
	Out  string   `placeholder:"DIR" help:"Folder for the files (default: the id, in the folder of the authority)."`

	authorityFlags
}

// Run implements `coppice certs node`.
func (c *certsNodeCmd) Run(a *cli.App) error {
	return c.issue(a, certs.Identity{Role: certs.Role(c.Role), Name: c.Name}, c.Out, c.Host)
}

type certsClientCmd struct {
	Name  string `arg:"" placeholder:"NAME" help:"Name of the user."`
	Role  string `required:"" enum:"admin,submit,read" placeholder:"ROLE" help:"Role: admin, submit or read. See coppice token --help for what each may do."`
	Quota uint32 `placeholder:"N" help:"Most jobs of the user that may be queued, running or paused when this certificate submits one (default: no bound)."`
	Out   string `placeholder:"DIR" help:"Folder for the files (default: the name, in the folder of the authority)."`

	authorityFlags
}

// Run implements `coppice certs client`.
func (c *certsClientCmd) Run(a *cli.App) error {
	if c.Quota > 0 && c.Role == string(rights.Read) {
		return cli.Usagef("--quota %d: the role read submits no jobs; leave --quota out, or give another --role", c.Quota)
	}
	return c.issue(a, certs.Identity{Role: certs.User, Name: c.Name, Rights: c.Role, Quota: c.Quota}, c.Out, nil)
}

// issue issues a certificate to a folder; empty means the default.
func (f *authorityFlags) issue(a *cli.App, i certs.Identity, out string, hosts []string) error {
	life, err := f.life()
	if err != nil {
		return err
	}
	authority, err := certs.OpenAuthority(f.Authority)
	if err != nil {
		return err
	}
	i.Cluster = authority.Cluster
	if err := i.Check(); err != nil {
		return cli.Usage(err)
	}
	if out == "" {
		out = filepath.Join(f.Authority, i.Name)
	}
	return printIssued(a, authority, out, i, hosts, life)
}

// issue issues a certificate to a folder.
func issue(authority *certs.Authority, out string, i certs.Identity, hosts []string,
	life time.Duration) (*issued, error) {
	leaf, err := authority.Issue(out, i, hosts, life)
	if err != nil {
		return nil, err
	}
	i.Cluster = authority.Cluster
	return &issued{Folder: out, Identity: i.String(), Until: leaf.NotAfter, Serial: leaf.SerialNumber.Text(16)}, nil
}

// printIssued issues a certificate and prints it.
func printIssued(a *cli.App, authority *certs.Authority, out string, i certs.Identity, hosts []string,
	life time.Duration) error {
	shown, err := issue(authority, out, i, hosts, life)
	if err != nil {
		return err
	}
	return a.Print(shown, func(w io.Writer) {
		cli.WritePairs(w, [][2]string{{"folder", out}, {"identity", shown.Identity},
			{"until", shown.Until.Format(time.RFC3339)}, {"serial", shown.Serial}})
	})
}

// issued is a certificate as the commands print it.
type issued struct {
	Folder   string    `json:"folder"`
	Identity string    `json:"identity"`
	Until    time.Time `json:"until"`
	Serial   string    `json:"serial"`
}

type certsShowCmd struct {
	Dir string `arg:"" placeholder:"DIR" help:"Folder with ca.crt, and tls.crt if it is of a process."`
}

// Run implements `coppice certs show`.
func (c *certsShowCmd) Run(a *cli.App) error {
	var list []certs.Summary
	for _, name := range []string{certs.CertFile, certs.AuthorityFile} {
		one, err := certs.Read(filepath.Join(c.Dir, name))
		if errors.Is(err, os.ErrNotExist) && name == certs.CertFile { // the folder of an authority
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, one...)
	}
	return a.Print(list, func(w io.Writer) {
		cli.WriteTable(w, []string{"file", "identity", "hosts", "from", "until", "signed by", "serial"}, list,
			func(s certs.Summary) []string {
				return []string{s.File, s.Identity, cmp.Or(strings.Join(s.Hosts, ","), "-"), s.From.Format(time.RFC3339),
					s.Until.Format(time.RFC3339), s.Issuer, s.Serial}
			})
	})
}

type certsCheckCmd struct {
	Dir string `arg:"" placeholder:"DIR" help:"Folder with ca.crt, tls.crt and tls.key."`
}

// Help implements kong's HelpProvider.
func (certsCheckCmd) Help() string {
	return `The key must belong to the certificate, and an authority in ca.crt must have signed it. The certificate must be valid now
and have an identity. Other users must not have permission to read the key. The command then lists the ports that accept
the certificate. The exit code is 2 if the folder cannot be used.`
}

// Run implements `coppice certs check`.
func (c *certsCheckCmd) Run(a *cli.App) error {
	source, err := certs.Open(c.Dir, nil)
	if err != nil {
		return cli.Usage(err)
	}
	id := source.Identity()
	shown := struct {
		issued
		Accepted []string `json:"accepted"`
		Refused  []string `json:"refused"`
	}{Refused: []string{}, issued: issued{Folder: c.Dir, Identity: id.String(), Until: source.Expires(),
		Serial: source.Own().SerialNumber.Text(16)}}
	for _, p := range certs.Ports {
		if slices.Contains(p.Roles, id.Role) {
			shown.Accepted = append(shown.Accepted, p.Name)
		} else {
			shown.Refused = append(shown.Refused, p.Name)
		}
	}
	return a.Print(shown, func(w io.Writer) {
		cli.WritePairs(w, [][2]string{
			{"folder", c.Dir}, {"identity", shown.Identity}, {"until", shown.Until.Format(time.RFC3339)},
			{"accepted by", cli.NameList(shown.Accepted)}, {"refused by", cli.NameList(shown.Refused)},
		})
	})
}

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
		cli.WriteTable(w, []string{"serial", "identity", "revoked", "ends"}, list, func(r protocol.Revocation) []string {
			return []string{r.Serial, cmp.Or(r.Identity, "-"), cli.Time(r.Time), cli.Time(r.Until)}
		})
	})
}

// certificateOf describes the certificate in a file or a folder, or the one with a serial number.
func certificateOf(text string) (r protocol.Revocation, err error) {
	info, err := os.Stat(text)
	if errors.Is(err, os.ErrNotExist) {
		serial := strings.TrimLeft(strings.ToLower(strings.ReplaceAll(text, ":", "")), "0")
		if !protocol.CheckSerial(serial) {
			return r, cli.Usagef("%q is neither a file nor a serial number of at most %d hexadecimal digits", text,
				protocol.MaxSerial)
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
		return r, cli.Usagef("%s is no certificate of a process or a user of a cluster; to refuse an authority, delete it "+
			"from every %s", text, certs.AuthorityFile)
	}
	return protocol.Revocation{Serial: leaf.Serial, Identity: leaf.Identity, Until: leaf.Until.Unix()}, nil
}

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
	fmt.Fprintf(&b, "tls {\n  cert_file: %q\n  key_file: %q\n  ca_file: %q\n  verify_and_map: true\n  handshake_first: "+
		"true\n}\nauthorization {\n  users = [\n",
		dir+"/"+certs.CertFile, dir+"/"+certs.KeyFile, dir+"/"+certs.AuthorityFile)
	subjects := protocol.Subjects{Cluster: "*"}
	for _, id := range ids {
		r := rights.OnNATS(subjects, rights.Role(id.Role), id.Name, id.Name)
		fmt.Fprintf(&b, "    {\n      user: %q\n      permissions: {\n        publish: { allow: %s }\n        subscribe: { "+
			"allow: %s }\n", id, quotedList(r.Publish), quotedList(r.Subscribe))
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
