// Package connect has the flags that name a cluster, and connects a command to it. While the cluster does not answer,
// the package says why. It also has what commands say when they have changed something on a cluster.
package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/client/outage"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// ServerFlags name the cluster of a command that changes nothing.
type ServerFlags struct {
	Server  []string `placeholder:"HOST[:PORT]" group:"cluster" help:"HTTP addresses of coordinators, or URLs of proxies such as https://HOST/PATH; one is enough (default: of the context, or 127.0.0.1:7100)."`
	Context string   `seldom:"" placeholder:"NAME" group:"cluster" help:"Context with the addresses and files of a cluster; see coppice context --help (default: COPPICE_CONTEXT, or the current context)."`

	tokenFlags
	TLSFlag

	asked bool // set by connect: true if the user named a cluster for this command
}

// ChangeFlags name the cluster of a command that changes something.
type ChangeFlags struct {
	ServerFlags
	Wait time.Duration `seldom:"" default:"30s" group:"cluster" help:"How long to wait for a cluster that does not answer. 0: do not wait, but say why there is no answer."`
}

const defaultServer = "127.0.0.1:7100"

// Connect returns a client that waits for a short while for the cluster. Shortly before that time is over, all
// coordinators are asked for their state, so that an error can tell what they said. The client is closed at the end of
// the command.
func (s *ServerFlags) Connect(a *cli.App) (*client.Client, error) {
	at, err := s.route(a)
	if err != nil {
		return nil, err
	}
	c, source, err := at.client()
	if err != nil {
		return nil, err
	}
	s.asked, a.Reach = at.explicit, Flags(a, s)
	c.Patience = protocol.ClientRead
	ctx, cancel := context.WithCancel(a.Ctx)
	go source.Watch(ctx)
	looks := &looks{survey: func() *outage.Outlook { return outage.Judge(c.Survey(ctx)) }, now: time.Now}
	early, now := time.AfterFunc(lookAfter, func() { looks.look() }), time.Now()
	a.AtEnd(func() {
		cancel()
		if !early.Stop() {
			looks.look() // wait for the survey to end
		}
		c.Close()
	})
	asks := &asked{a: a, cl: c, looks: looks, early: early, since: now, last: now}
	a.Cluster, c.Waiting = asks, asks.waiting
	return c, nil
}

// Connect returns a client that waits for the cluster as --wait says, and meanwhile says why on stderr.
func (f *ChangeFlags) Connect(a *cli.App) (*client.Client, error) {
	if f.Wait < 0 {
		return nil, cli.Usagef("{wait=%v}: want 0 or more", f.Wait)
	}
	c, err := f.ServerFlags.Connect(a)
	if err != nil {
		return nil, err
	}
	a.Cluster.Patient(f.Wait)
	return c, nil
}

// ConnectOr is Connect for a command that can also do without a cluster. If the user names no cluster, instead says
// how, while the command waits for the default address and in its error.
func (f *ChangeFlags) ConnectOr(a *cli.App, instead string) (*client.Client, error) {
	c, err := f.Connect(a)
	if s, ok := a.Cluster.(*asked); ok && err == nil && !f.asked {
		s.instead = "; " + instead
	}
	return c, err
}

// Connector has the flags that name a cluster: ServerFlags or ChangeFlags.
type Connector interface {
	Connect(a *cli.App) (*client.Client, error)
}

// Ask connects to the cluster of a command, makes a request, and prints the answer: as JSON, or by text.
func Ask[T any](a *cli.App, c Connector, request func(*client.Client) (T, error), text func(io.Writer, T)) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	answer, err := request(cl)
	if err != nil {
		return err
	}
	return a.Print(answer, func(w io.Writer) { text(w, answer) })
}

// Try is Connect for a command that may not need a cluster. If the user names none, it does not wait.
func Try(a *cli.App, s *ServerFlags) (*client.Client, error) {
	c, err := s.Connect(a)
	if err == nil && !s.asked {
		c.Patience = 0
	}
	return c, err
}

// tokenFlags name the token of a user, and the authorities of a cluster.
type tokenFlags struct {
	TokenFile string `name:"token-file" seldom:"" placeholder:"FILE" group:"cluster" help:"File with a token from coppice token create. It takes the place of --tls-dir, and needs --ca-file."`
	CAFile    string `name:"ca-file" seldom:"" placeholder:"FILE" group:"cluster" help:"File with the certificate authorities (CA) of the cluster: ca.crt, which coppice certs init and coppice certs cluster make. The command then connects with TLS."`
}

// route is how a command reaches a cluster.
type route struct {
	server            []string
	ca, token, folder string // paths
	explicit          bool   // true if the user named the servers for this command, or its context
}

// choose joins what flags, variables and a context say, the strongest first. A certificate and a token
// exclude each other: the first level with one of them decides. A certificate comes with authorities.
func choose(levels ...route) (at route, err error) {
	for _, l := range levels {
		if l.folder != "" && (l.token != "" || l.ca != "") {
			return at, cli.Usagef("{tls-dir} excludes {token-file} and {ca-file}: the folder has a certificate and ca.crt; " +
				"leave one out")
		}
		if len(at.server) == 0 {
			at.server, at.explicit = l.server, l.explicit && len(l.server) > 0
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
		return at, cli.Usagef("{token-file=%s}: a token is never sent without TLS; name the authorities of the cluster "+
			"with {ca-file}, a copy of ca.crt", at.token)
	}
	return at, nil
}

// errTokenGiven does not repeat the token.
var errTokenGiven = cli.Usagef("{token-file}: the value looks like a token; write the token to a file that only you " +
	"can read, and give its path")

// route finds the cluster of a command: by a flag, then by a variable or the file of --config, then by a
// context. If --context is on the command line, variables do not count.
func (s *ServerFlags) route(a *cli.App) (route, error) {
	var flags, outside route
	level := func(flag string) *route {
		if a.Given(flag) {
			return &flags
		}
		return &outside
	}
	level("server").server = s.Server
	level("token-file").token = s.TokenFile
	level("ca-file").ca = s.CAFile
	level("tls-dir").folder = s.TLSDir
	if access.HasToken(s.TokenFile) {
		return route{}, errTokenGiven
	}
	flags.explicit, outside.explicit = true, true
	file, err := contexts.Load(contexts.DefaultPath())
	if err != nil {
		return route{}, cli.Usage(err)
	}
	levels := []route{flags, outside}
	if a.Given("context") {
		levels = levels[:1]
	}
	name := s.Context
	if name == "" {
		name = file.Current
	}
	if name != "" {
		c, err := file.Find(name)
		if err != nil {
			where := "--context"
			if name := cli.Variable("context"); !a.Given("context") && os.Getenv(name) != "" {
				where = name
			}
			return route{}, cli.Usagef("%s: %w", where, err)
		}
		var named []string
		asks := c.TLSDir+c.CA != ""
		for _, l := range levels {
			if asks = asks && l.folder+l.ca == ""; named == nil {
				named = l.server
			}
		}
		isPlain := func(server string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimSpace(server)), "http://")
		}
		if i := slices.IndexFunc(named, isPlain); i >= 0 && asks {
			return route{}, cli.Usagef("{server=%s}: http uses no TLS, but the context %s asks for TLS; leave out http://",
				named[i], name)
		}
		levels = append(levels, route{server: c.Server, ca: c.CA, token: c.TokenFile, folder: c.TLSDir,
			explicit: s.Context != ""})
	}
	return choose(levels...)
}

// NewContext returns c with ports and absolute paths. It refuses a context with which no command could connect.
func NewContext(c contexts.Context) (contexts.Context, error) {
	if access.HasToken(c.TokenFile) {
		return c, errTokenGiven
	}
	c.Server = WithPorts(c.Server)
	for _, path := range []*string{&c.CA, &c.TokenFile, &c.TLSDir} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return c, err
		}
	}
	at, err := choose(route{server: c.Server, ca: c.CA, token: c.TokenFile, folder: c.TLSDir})
	if err != nil {
		return c, err
	}
	cl, _, err := at.client()
	if err != nil {
		return c, err
	}
	cl.Close()
	return c, nil
}

// Named returns the flag on the command line that names the cluster, with its value, or nil.
func Named(a *cli.App, s *ServerFlags) []string {
	switch {
	case a.Given("server"):
		return []string{"--server", strings.Join(s.Server, ",")}
	case a.Given("context"):
		return []string{"--context", s.Context}
	}
	return nil
}

// Chosen reports whether a flag, a variable or the current context names a cluster.
func Chosen(s *ServerFlags) bool {
	if len(s.Server) > 0 || s.Context != "" {
		return true
	}
	file, err := contexts.Load(contexts.DefaultPath())
	return err != nil || file.Current != "" // Connect returns the error
}

// Flags returns the flags on the command line that say which cluster, and how to connect, as words for a shell.
func Flags(a *cli.App, s *ServerFlags) []string {
	words := Named(a, s)
	for _, f := range [][2]string{{"tls-dir", s.TLSDir}, {"ca-file", s.CAFile}, {"token-file", s.TokenFile}} {
		if a.Given(f[0]) {
			words = append(words, "--"+f[0], f[1])
		}
	}
	for i, word := range words {
		words[i] = shellword.Quote(word)
	}
	return words
}

// client returns a client of the cluster, and its certificates. Nobody watches these yet.
func (w *route) client() (*client.Client, *certs.Source, error) {
	servers := strings.Join(WithPorts(w.server), ",")
	if servers == "" {
		servers = defaultServer
	}
	var source *certs.Source
	var err error
	switch {
	case w.folder != "":
		if source, err = certs.Open(w.folder, nil); err != nil {
			return nil, nil, cli.Usagef("{tls-dir}: %w", err)
		}
	case w.ca != "":
		if source, err = certs.Trust(w.ca); err != nil {
			return nil, nil, cli.Usagef("{ca-file}: %w", err)
		}
	}
	var c *client.Client
	if w.token != "" {
		token, failed := ReadSecret(w.token)
		if failed != nil {
			return nil, nil, cli.Usagef("{token-file}: %w", failed)
		}
		if _, _, err := access.ParseToken(token); err != nil { // the error does not show the token
			return nil, nil, cli.Usagef("{token-file}: %s: %w", w.token, err)
		}
		c, err = client.NewWithToken(servers, source, token)
	} else {
		c, err = client.NewWith(servers, source)
	}
	if err != nil {
		return nil, nil, cli.Usagef("{server}: %w", err)
	}
	return c, source, nil
}

const (
	maxTokenFile = 4 << 10
	// strangers are the permissions of users who are neither the owner nor in the group of a file.
	strangers = 0o007
)

// ReadSecret reads the text of a file that other users must not read.
func ReadSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&strangers != 0 {
		return "", fmt.Errorf("%s: the mode is %04o, but other users must not use a token; run: chmod 600 %s", path,
			info.Mode().Perm(), path)
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
	return strings.TrimSpace(string(b)), nil
}

// WithPort adds the default port to a host without one. It returns everything else unchanged, for its reader to refuse.
// A number alone is a port, not a host.
func WithPort(address string) string {
	var missing *net.AddrError
	_, _, err := net.SplitHostPort(address)
	if !errors.As(err, &missing) || missing.Err != "missing port in address" || address == "" ||
		strings.Trim(address, "0123456789") == "" || strings.Contains(address, "/") {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(coordinator.DefaultPort))
}

// WithPorts is WithPort for each address, without the spaces around it.
func WithPorts(addresses []string) []string {
	var all []string
	for _, a := range addresses {
		all = append(all, WithPort(strings.TrimSpace(a)))
	}
	return all
}

// CheckNoCluster refuses --server and --wait on the command line if flag says that no cluster is asked. A variable or
// a configuration file may name a cluster nevertheless.
func CheckNoCluster(a *cli.App, flag errtext.Text, asksNone bool) error {
	for _, name := range []string{"server", "context", "tls-dir", "token-file", "ca-file", "wait"} {
		if asksNone && a.Given(name) {
			return cli.Usagef("%s needs a cluster, but %s uses none; leave one of them out", errtext.Option(name, ""), flag)
		}
	}
	return nil
}

const (
	// lull is the time without a repeated request after which a new wait begins. A try may take nearly as long.
	lull = protocol.ClientTry + time.Second
	// tellFirst is how long a request waits before a line says why.
	tellFirst = 2 * time.Second
	// tellEvery is the interval between two lines about a wait.
	tellEvery = 5 * time.Second
	// lookAfter is when all coordinators are asked for their state. A command that only reads has their answers when
	// its own time is over.
	lookAfter = protocol.ClientRead - 2*protocol.Survey - 250*time.Millisecond
	// lookKept is how long the answers of coordinators explain an error: as long as a command that only reads waits for
	// an answer.
	lookKept = protocol.ClientRead
)

// asked is the cluster that a command asks, and why it does not answer.
type asked struct {
	a     *cli.App
	cl    *client.Client
	tells bool        // true if the command says on stderr why it waits
	looks *looks      // what each coordinator said
	early *time.Timer // fills looks before they are needed

	instead string // ends texts about a cluster that does not answer: what to do without one

	mu                sync.Mutex
	since, last, told time.Time
}

// looks keeps for a while what the coordinators said when each was asked.
type looks struct {
	survey func() *outage.Outlook
	now    func() time.Time

	mu   sync.Mutex
	last *outage.Outlook
	at   time.Time
}

// look returns what the coordinators said last. It asks them if that is too old.
func (l *looks) look() *outage.Outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.now().Sub(l.at) > lookKept {
		l.last = l.survey()
		l.at = l.now()
	}
	return l.last
}

// Patient makes the client wait for the cluster, and say why on stderr.
func (s *asked) Patient(wait time.Duration) {
	s.early.Stop()
	s.tells, s.cl.Patience = true, wait
}

// waiting says why a request waits: after two seconds, then every five.
func (s *asked) waiting(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.last) > lull {
		s.since = now
	}
	s.last = now
	if !s.tells || now.Sub(s.since) < tellFirst || now.Sub(s.told) < tellEvery {
		return
	}
	s.told = now
	o := outage.Judge(s.cl.Survey(s.a.Ctx))
	if s.last = time.Now(); s.a.Ctx.Err() == nil {
		if reason := o.Reason(err); !cli.ToLibrary(s.a.Stderr, "waiting", errtext.Sprintf("%s", reason)) {
			s.a.Note("waiting for the cluster: %s%s", reason, s.instead)
		}
	}
}

// IsSilent reports whether a line has said that the cluster does not answer, and nothing has changed since.
func (s *asked) IsSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.told.IsZero() && time.Since(s.last) <= lull
}

// Explained adds what each coordinator says to the error that no coordinator answered.
func (s *asked) Explained(err error) error {
	var e *client.Unavailable
	if !errors.As(err, &e) {
		return err
	}
	var o *outage.Outlook
	if s.tells {
		o = outage.Judge(s.cl.Survey(s.a.Ctx))
	} else {
		o = s.looks.look()
	}
	if s.a.Ctx.Err() != nil {
		return s.a.Ctx.Err()
	}
	text := strings.Replace(err.Error(), e.Error(), o.Reason(e.Last), 1) + s.instead
	if e.Unknown {
		text += "; the command may have taken effect nevertheless: check before you repeat it"
	}
	return cli.Reworded(err, text)
}

// TLSFlag names the certificates of a process.
type TLSFlag struct {
	TLSDir string `name:"tls-dir" seldom:"" placeholder:"DIR" group:"cluster" help:"Folder with the certificates of this process: ca.crt, tls.crt and tls.key, from coppice certs (default: connections are not encrypted)."`
}

// SharedFlag says who may read what a command makes on a cluster.
type SharedFlag struct {
	Shared bool `group:"cluster" help:"Let all users of the cluster read what this command makes there (default: only you and admins)."`
}

// NoteNotShared says that --shared has changed nothing, since what it is about existed before and is private. kind is
// dataset, job or experiment.
func NoteNotShared(a *cli.App, kind, name string) {
	a.Note("note: %s %s was there before and is private; to share it: %s", kind, name, a.Command(kind+" share "+name))
}

// Freed says how much disk space a deletion frees, and when.
func Freed(d *protocol.Deletion) string {
	var bytes uint64
	for i := range d.Jobs {
		bytes += d.Jobs[i].Bytes
	}
	does := "this frees"
	if d.DryRun {
		does = "this would free"
	}
	switch {
	case d.Frees == 0 && bytes == 0:
		return does + " no disk space"
	case d.Frees == 0:
		return does + " no disk space: other jobs need the same models and predictions"
	}
	rest := ""
	if d.Frees < bytes {
		rest = " (other jobs need the rest)"
	}
	return fmt.Sprintf("%s %s%s on the disk of each coordinator %s", does, units.Format(int64(d.Frees)), rest, whenFreed())
}

// whenFreed says when the space of deleted data is free.
func whenFreed() string {
	return fmt.Sprintf("within seconds if the files are older than %.0f minutes, and otherwise when they reach that age",
		protocol.BlobGrace.Minutes())
}

// FreedLater is Freed for a deletion that does not know how much it frees.
func FreedLater() string {
	return "data that nothing else needs are deleted from the disks " + whenFreed()
}
