// Package clustercmd has the commands that run and manage a cluster: coordinators and workers, certificates, tokens,
// backups, audit records, and the contexts that name clusters.
package clustercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/client/outage"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cmd has the commands for operators of a cluster.
type Cmd struct {
	Members  membersCmd  `cmd:"" help:"List the coordinators and the state of each."`
	Add      addCmd      `cmd:"" help:"Add a running coordinator to the cluster."`
	Remove   removeCmd   `cmd:"" help:"Remove a coordinator from the cluster, whether it is alive or dead."`
	Transfer transferCmd `cmd:"" help:"Transfer the leadership to another coordinator."`

	Show  clusterShowCmd  `cmd:"" default:"withargs" help:"Show the leader, the coordinators, the workers, and the quarantined workers."`
	Trust clusterTrustCmd `cmd:"" help:"Use a quarantined worker again."`
}

type membersCmd struct {
	Stale bool `help:"Ask each coordinator separately and say what is wrong. This works without a leader, a quorum or NATS."`

	connect.ServerFlags
}

// Help implements kong's HelpProvider.
func (membersCmd) Help() string {
	return `The command asks the leader, and the leader asks the other coordinators. With --stale the command itself asks each
coordinator of --server, and the members that they name. Each coordinator reports only its own state, which may be out of
date. At the end the command says what the reports mean for the cluster. It fails only if no coordinator answers.`
}

// Run implements `coppice cluster members`.
func (c *membersCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	if c.Stale {
		return showStale(a, cl)
	}
	return showMembers(a, cl)
}

// showMembers prints the coordinators.
func showMembers(a *cli.App, cl *client.Client) error {
	m, err := cl.Members().List(a.Ctx)
	if err != nil {
		return err
	}
	return a.Print(m, func(w io.Writer) {
		cli.WriteTable(w, []string{"ID", "ROLE", "HTTP", "RAFT", "NATS", "VERSION", "APPLIED", "CONTACT", "STATE"}, m.Members,
			func(one protocol.Member) []string {
				applied, contact := "-", "-"
				if one.Alive {
					applied, contact = fmt.Sprint(one.Applied), lastSeen(one.Contact)
				}
				return []string{one.ID, one.Role, one.HTTP, one.Raft, one.NATS, one.Version, applied, contact, memberState(&one)}
			}, 7, 8)
	})
}

// memberState describes the state of a coordinator in a few words.
func memberState(m *protocol.Member) string {
	switch {
	case !m.Alive:
		return "does not answer: " + m.Problem
	case m.Problem != "":
		return m.Problem
	case m.Warning != "":
		return m.Warning
	case m.Missing > 0:
		return units.Plural(m.Missing, "blob") + " to fetch"
	}
	return "ready"
}

type addCmd struct {
	Member string        `arg:"" placeholder:"ID=HOST[:PORT]" help:"The new coordinator's id and HTTP address."`
	Vote   time.Duration `name:"vote-timeout" default:"10m" help:"How long to wait until the new coordinator has caught up and votes. 0: do not wait."`

	connect.ChangeFlags
}

// Help implements kong's HelpProvider.
func (addCmd) Help() string {
	return `Start the new coordinator first, with an empty folder:

  coppice coordinator --id d --dir DIR --join-cluster 10.0.0.1:7100 --address 10.0.0.4:7100
  coppice cluster add d=10.0.0.4:7100

The new coordinator receives the log and the blobs. It votes after it has caught up, even if this command is
interrupted meanwhile.`
}

// Run implements `coppice cluster add`.
func (c *addCmd) Run(a *cli.App) error {
	peer, err := parsePeer(c.Member)
	if err != nil {
		return cli.Usagef("%q: %w", c.Member, err)
	}
	id := peer.ID
	if c.Vote < 0 {
		return cli.Usagef("{vote-timeout=%v}: want 0 or more", c.Vote)
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	m, err := cl.Members().Add(a.Ctx, protocol.AddRequest{ID: id,
		HTTP: net.JoinHostPort(peer.Host, strconv.Itoa(peer.Port))})
	if err != nil {
		return err
	}
	warned(a, m)
	if c.Vote > 0 {
		if err := c.await(a, cl, id); err != nil {
			return err
		}
	}
	return showMembers(a, cl)
}

// warned prints the warning about a change.
func warned(a *cli.App, m *protocol.Members) {
	if m.Warning != "" {
		a.Note("note: %s", m.Warning)
	}
}

// addPause is the time between two requests for the progress of a new coordinator.
const addPause = 200 * time.Millisecond

// await shows the progress of the new coordinator until it votes.
func (c *addCmd) await(a *cli.App, cl *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(a.Ctx, c.Vote)
	defer cancel()
	meter := progress.New(a)
	defer meter.Clear()
	last := "it has not answered"
	for {
		m, err := cl.Members().List(ctx)
		if err == nil {
			votes, how := progressOf(m, id)
			if votes {
				return nil
			}
			last = how
			meter.Show(id + " catches up: " + how)
		}
		select {
		case <-ctx.Done():
			if a.Ctx.Err() != nil {
				return a.Ctx.Err()
			}
			return fmt.Errorf("coordinator %s does not vote after %v: %s; it will vote after it has caught up (see coppice "+
				"cluster members), or remove it: %s", id, c.Vote, last, a.Command("cluster remove "+id))
		case <-time.After(addPause):
		}
	}
}

// progressOf describes the progress of a new coordinator, and reports whether it votes.
func progressOf(m *protocol.Members, id string) (votes bool, how string) {
	for _, one := range m.Members {
		switch {
		case one.ID != id:
		case one.Role != protocol.RoleNonvoter:
			return true, ""
		case !one.Alive:
			return false, one.Problem
		default:
			return false, fmt.Sprintf("log entry %d of %d, %s missing", one.Applied, m.Applied,
				units.Plural(one.Missing, "blob"))
		}
	}
	return false, "it is not a member of the cluster"
}

type removeCmd struct {
	ID string `arg:"" help:"Id of the coordinator."`

	connect.ChangeFlags
}

// Help implements kong's HelpProvider.
func (removeCmd) Help() string {
	return `The coordinator may be alive or dead. A leader first transfers the leadership. The command is refused if no quorum of
the other coordinators answers and has all blobs. A coordinator that is alive stops by itself. To add it again later,
empty its folder.`
}

// Run implements `coppice cluster remove`.
func (c *removeCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	m, err := cl.Members().Remove(a.Ctx, c.ID)
	if err != nil {
		return err
	}
	warned(a, m)
	a.Note("coordinator %s was removed; if it is running, it stops by itself", c.ID)
	for _, r := range m.Revoked {
		a.Note("certificate %s of %s was revoked", r.Serial, r.Identity)
	}
	return showMembers(a, cl)
}

type transferCmd struct {
	ID string `arg:"" optional:"" help:"Id of the next leader (default: the voter with the most log entries)."`

	connect.ChangeFlags
}

// transferWithin bounds the wait for another leader.
const transferWithin = 15 * time.Second

// Run implements `coppice cluster transfer`.
func (c *transferCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	before, err := cl.Members().List(a.Ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(a.Ctx, transferWithin)
	defer cancel()
	err = cl.Members().Transfer(ctx, c.ID)
	for err == nil {
		now, asked := cl.Cluster(ctx)
		if asked == nil && c.ID != "" && now.Leader != "" && now.Leader != before.Leader && now.Leader != c.ID {
			return fmt.Errorf("coordinator %s was elected instead of %s; try again", now.Leader, c.ID)
		}
		if asked == nil && now.Leader != "" && (now.Leader != before.Leader || c.ID == now.Leader) {
			return a.Print(struct {
				Leader string `json:"leader"`
				Before string `json:"previous"`
			}{now.Leader, before.Leader}, func(w io.Writer) {
				fmt.Fprintf(w, "coordinator %s leads now; the leader before was %s\n", now.Leader, before.Leader)
			})
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(addPause / 4):
		}
	}
	if a.Ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no other coordinator leads after %v; coppice cluster members shows who does", transferWithin)
	}
	return err
}

// clusterShowCmd is also the command `coppice cluster` without a subcommand.
type clusterShowCmd struct{ connect.ServerFlags }

// Help implements kong's HelpProvider.
func (clusterShowCmd) Help() string {
	return `"busy" is the number of tasks that a worker computes now; it is at most the number of slots. "task" is the recent time of
a task, for the kind of task that takes most of the worker's time; -o json has all kinds. "load" is the load average of the
machine over a minute. "last seen" is the time since a worker's last heartbeat, or since a coordinator last answered the
leader, which asks about every two seconds. "lag" is the number of log entries that a coordinator still lacks. A second
table says why workers compute nothing; -o json has the same as idle and idle_reason.`
}

// Run implements `coppice cluster` and `coppice cluster show`.
func (c *clusterShowCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	info, err := cl.Cluster(a.Ctx)
	if err != nil {
		return err
	}
	return a.Print(info, func(w io.Writer) { writeCluster(a, w, info, client.UsesTLS(cl)) })
}

// writeCluster describes a cluster. tls is true if connections to it use TLS.
func writeCluster(a *cli.App, w io.Writer, c *protocol.Cluster, tls bool) {
	leader := c.Leader
	if leader == "" {
		leader = "none at present; see coppice cluster members --stale"
	}
	cli.WritePairs(w, [][2]string{
		{"cluster", c.ID}, {"leader", leader}, {"epoch", fmt.Sprint(c.Epoch)},
		{"coordinators", units.Plural(len(c.Coordinators), "coordinator") + "; see coppice cluster members"},
		{"version", fmt.Sprintf("%s (protocol %d, arithmetic version %d)", c.Version, c.Protocol, c.Numerics)},
	})
	if c.Problem != "" {
		cli.WritePairs(w, [][2]string{{"problem", c.Problem}})
	}
	if c.Warning != "" {
		cli.WritePairs(w, [][2]string{{"warning", c.Warning}})
	}
	if c.Insecure {
		cli.WritePairs(w, [][2]string{{"insecure", "connections with other machines are not encrypted, and anybody may " +
			"connect; see coppice certs --help"}})
	}
	fmt.Fprintln(w)
	writeCoordinators(w, c)
	fmt.Fprintln(w)
	writeWorkers(w, c.Workers)
	writeIdle(w, c.Workers)
	if len(c.Workers) == 0 && c.Leader != "" {
		fmt.Fprintln(w, protocol.NoWorker(protocol.StartWorker(protocol.JoinList(c.Coordinators),
			protocol.SecurityFlags(tls, c.Insecure))))
	}
	writeDistrusted(a, w, c.Quarantined)
}

// writeCoordinators lists the coordinators as the leader sees them. Without a leader it lists them as they are
// recorded.
func writeCoordinators(w io.Writer, c *protocol.Cluster) {
	if len(c.Members) == 0 {
		cli.WriteTable(w, []string{"coordinator", "address", "version"}, c.Coordinators,
			func(one protocol.MemberEntry) []string {
				return []string{one.ID, one.HTTP, one.Version}
			})
		return
	}
	cli.WriteTable(w, []string{"coordinator", "role", "host", "address", "load", "lag", "last seen", "version", "problem"},
		c.Members, func(m protocol.Coordinator) []string {
			seen := lastSeen(m.LastSeen)
			if m.Role == protocol.RoleLeader {
				seen = "now"
			}
			return []string{m.ID, m.Role, cmp.Or(m.Host, "-"), m.HTTP, loadOf(m.Load), units.Count(m.Lag), seen,
				m.Version, m.Problem}
		}, 5, 6, 7)
}

func writeWorkers(w io.Writer, workers []protocol.Worker) {
	cli.WriteTable(w, []string{"worker", "state", "host", "address", "slots", "busy", "load", "shards", "task",
		"last seen", "version"}, workers, func(one protocol.Worker) []string {
		return []string{one.ID, one.State, cmp.Or(one.Host, "-"), cmp.Or(one.Metrics, one.Address, "-"),
			fmt.Sprint(one.Slots), fmt.Sprint(one.Busy),
			loadOf(one.Load), fmt.Sprint(one.Shards), unitTime(&one), lastSeen(one.LastSeen), cmp.Or(one.Version, "-")}
	}, 5, 6, 7, 8, 10)
}

// writeIdle says why workers compute nothing. Workers with the same reason share a line.
func writeIdle(w io.Writer, workers []protocol.Worker) {
	var reasons []string
	with := make(map[string][]string)
	for i := range workers {
		one := &workers[i]
		if one.Idle == "" {
			continue
		}
		if with[one.Idle] == nil {
			reasons = append(reasons, one.Idle)
		}
		with[one.Idle] = append(with[one.Idle], one.ID)
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintln(w)
	cli.WriteTable(w, []string{"idle worker", "why"}, reasons, func(why string) []string {
		names := with[why]
		text := strings.Join(names[:min(len(names), maxIdleNames)], ", ")
		if n := len(names) - maxIdleNames; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		return []string{text, why}
	})
}

// maxIdleNames bounds the workers that a line names.
const maxIdleNames = 4

func loadOf(load float64) string {
	if load == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", load)
}

func lastSeen(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return units.Duration(float64(ms) / 1000)
}

// unitTime returns the recent time of a task of the kind that takes most of the time of a worker.
func unitTime(w *protocol.Worker) string {
	seconds, ok := w.TaskSeconds[w.MainKind]
	switch {
	case !ok:
		return "-"
	case seconds < 0.01:
		return fmt.Sprintf("%s %.2g ms", w.MainKind, 1000*seconds)
	}
	return w.MainKind + " " + units.Duration(seconds)
}

// clusterTrustCmd ends the quarantine of a worker.
type clusterTrustCmd struct {
	Worker string `arg:"" help:"Name of a worker that coppice cluster show lists as quarantined."`

	connect.ChangeFlags
}

// Run implements `coppice cluster trust`.
func (c *clusterTrustCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) (map[string]string, error) {
		return map[string]string{"worker": c.Worker}, cl.Trust(a.Ctx, c.Worker)
	}, func(w io.Writer, _ map[string]string) {
		fmt.Fprintf(w, "worker %s is used again; the jobs for which it computed results are still marked as suspect\n",
			c.Worker)
	})
}

// writeDistrusted lists the quarantined workers.
func writeDistrusted(a *cli.App, w io.Writer, list []protocol.Quarantined) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w)
	cli.WriteTable(w, []string{"quarantined worker", "since", "why"}, list, func(d protocol.Quarantined) []string {
		return []string{d.Worker, cli.Time(d.Time), d.Reason}
	})
	fmt.Fprintln(w, "to use a worker again: "+a.Command("cluster trust WORKER"))
}

// showStale asks each coordinator separately and prints the answers. It needs no leader, quorum or NATS, and fails only
// if no coordinator answers.
func showStale(a *cli.App, cl *client.Client) error {
	o := outage.Judge(cl.Survey(a.Ctx))
	if err := a.Ctx.Err(); err != nil {
		return err
	}
	if err := a.Print(o, func(w io.Writer) { writeOutlook(w, o) }); err != nil {
		return err
	}
	return o.Err()
}

func writeOutlook(w io.Writer, o *outage.Outlook) {
	cli.WriteTable(w, []string{"ID", "HTTP", "ROLE", "TERM", "LAST", "APPLIED", "HEARS", "CONTACT", "MISSING", "VERSION",
		"STATE"}, o.Members, func(s outage.Member) []string {
		if !s.Answered {
			return []string{cmp.Or(s.ID, "-"), s.HTTP, "-", "-", "-", "-", "-", "-", "-", "-", "does not answer: " + s.Problem}
		}
		return []string{s.ID, s.HTTP, s.Role, fmt.Sprint(s.Term), units.Count(s.Last), units.Count(s.Applied),
			cmp.Or(s.Leader, "-"),
			lastSeen(s.Contact), units.Count(s.Missing), s.Version, cmp.Or(s.Problem, "-")}
	}, 4, 5, 6, 8, 9)
	fmt.Fprintf(w, "\n%s\n", o.Verdict)
}
