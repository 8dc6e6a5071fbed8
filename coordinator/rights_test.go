package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/protocol/rights"
	"github.com/coppice-ldl/coppice/worker"
)

// guarded is a NATS server. Each client has the rights of its user. A user is a role and a
// name, such as worker.w0.
type guarded struct {
	t      *testing.T
	folder func(role rights.Role, name string) string // of a coordinator of the cluster
	server *server.Server

	mu      sync.Mutex
	refused []string // what clients were refused, as the server logs it
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, MaxPayload: 1 << 20, CustomClientAuthentication: g,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.SetLoggerV2(g, false, false, false)
	g.server = s
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testkit.Limit) {
		t.Fatal("NATS does not start")
	}
	return g
}

func password(user string) string { return "secret-of-" + user }

// Check implements server.Authentication.
func (g *guarded) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	role, name, ok := strings.Cut(o.Username, ".")
	if !ok || o.Password != password(o.Username) {
		return false
	}
	id, err := os.ReadFile(filepath.Join(g.folder(rights.Role(role), name), "CLUSTER"))
	if err != nil {
		g.t.Error(err)
		return false
	}
	cluster, _, _ := strings.Cut(string(id), "\n")
	permitted := rights.OnNATS(protocol.Subjects{Cluster: cluster}, rights.Role(role), name, o.Name)
	c.RegisterUser(&server.User{Username: o.Username, Permissions: bus.Permissions(permitted)})
	return true
}

// url returns the address of the server for a user.
func (g *guarded) url(user string) string {
	return strings.Replace(g.server.ClientURL(), "nats://", "nats://"+user+":"+password(user)+"@", 1)
}

// connect connects a user under a name until the end of the test.
func (g *guarded) connect(ctx context.Context, user, name, answers string) *bus.Conn {
	g.t.Helper()
	c, err := bus.Connect(ctx, bus.Options{URLs: []string{g.url(user)}, Name: name, Answers: answers})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

// take returns what was refused since the last call.
func (g *guarded) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.refused = nil }()
	return g.refused
}

// Errorf implements server.Logger.
func (g *guarded) Errorf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "Violation") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refused = append(g.refused, text)
	}
}

// The other methods of server.Logger.
func (g *guarded) Noticef(string, ...any)         {}
func (g *guarded) Warnf(format string, v ...any)  { g.Errorf(format, v...) }
func (g *guarded) Fatalf(format string, v ...any) { g.t.Errorf(format, v...) }
func (g *guarded) Debugf(format string, v ...any) {}
func (g *guarded) Tracef(format string, v ...any) {}

// startGuarded starts three coordinators, a worker and a member of a pool on a guarded NATS.
func startGuarded(t *testing.T) (*cluster, *guarded) {
	t.Helper()
	c := prepare(t, 3)
	g := newGuarded(t)
	t.Cleanup(c.stopAll)
	g.folder = func(role rights.Role, name string) string {
		if role != rights.Coordinator {
			name = "a"
		}
		return filepath.Join(c.dir, name)
	}
	c.checkpoints = 20 * time.Millisecond
	c.tune = func(cfg *coordinator.Config) { cfg.NATS = g.url("coordinator." + cfg.ID) }
	c.equip = func(cfg *worker.Config) {
		user := "worker." + cfg.ID
		if pool, _, ok := strings.Cut(cfg.ID, "-"); ok {
			user = "pool." + pool
		}
		cfg.NATS = []string{g.url(user)}
	}
	c.startAll(1)
	c.startWorker("gpu-1")
	return c, g
}

// TestRightsSuffice: jobs are done while a leader and a worker start again, and no process is refused a
// subject that it uses.
func TestRightsSuffice(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c, g := startGuarded(t)
	c.put(ctx, "art")
	s := eventful()
	want := localDigest(t, s)
	c.train(ctx, s, func() {
		leader := c.leader(ctx)
		c.stop(leader)
		c.leader(ctx)
		c.startCoordinator(leader)
	})
	end := c.train(ctx, s, func() { c.stop("w0"); c.startWorker("w0") })
	if !strings.Contains(string(end.Outcome), want) {
		t.Errorf("the outcome %.300s lacks the digest %s of --local", end.Outcome, want)
	}
	folds := longFolds() // checkpoints, progress and results of gather rounds
	folds.Set["steps"] = lasting(4000)
	c.train(ctx, folds, nil)
	info, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	asks := g.connect(ctx, "worker.w9", "w9", protocol.Subjects{Cluster: info.ID}.Answers("w9"))
	fetch := protocol.Subjects{Cluster: info.ID}.Fetch("w9")
	var b bytes.Buffer
	digest, err := c.client.Blobs().Put(ctx, []byte("a blob"))
	if err != nil {
		t.Fatal(err)
	}
	if err := asks.FetchBlob(ctx, fetch, digest, 0, &b); err != nil || b.String() != "a blob" {
		t.Errorf("fetched %q: %v", b.String(), err)
	}
	short, cancel := context.WithTimeout(ctx, time.Second) // the first request is passed on to all
	defer cancel()
	if err := asks.FetchBlob(short, fetch, blobs.Sum([]byte("nobody has it")), 0, &b); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("fetched a blob that nobody has: %v", err)
	}
	if refused := g.take(); len(refused) > 0 {
		t.Errorf("%d messages or subscriptions were refused:\n%s", len(refused), strings.Join(refused, "\n"))
	}
}

// TestRightsRefuse: a worker, a member of a pool, a user and a model server can use no subject of
// another. The worker, the member or the coordinator that has the right can use it.
func TestRightsRefuse(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c, g := startGuarded(t)
	c.leader(ctx)
	info, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Subjects{Cluster: info.ID}
	result := protocol.ResultsOf(s.Results("a", 1), "w0")
	publish := map[string][]string{ // who may, besides whom every user below may not
		s.Heartbeats("w0"): {"worker.w0"}, s.Heartbeats("gpu-1"): {"pool.gpu/gpu-1"}, result: {"worker.w0"},
		s.Fetch("w0"): {"worker.w0"}, s.Lead(): {"coordinator.b"}, s.Work("w0"): {"coordinator.b"},
		s.Fetch("w0") + protocol.PassedOn: {"coordinator.b"}, s.CoordinatorBlobs("a"): {"coordinator.b"},
		s.WorkerBlobs("w0"): {"coordinator.b"},
		s.Replicate("a"):    {"coordinator.b"}, s.Answers("w0") + ".x": {"coordinator.b"}, s.Inbox("a") +
			".x": {"coordinator.b"},
	}
	subscribe := map[string][]string{
		s.Work("w0"): {"worker.w0"}, s.WorkerBlobs("w0"): {"worker.w0"}, s.Answers("w0") + ".>": {"worker.w0"},
		s.Work("gpu-1"):   {"pool.gpu/gpu-1"},
		s.Heartbeats("*"): {"coordinator.b"}, s.AllResults("b", "*"): {"coordinator.b"}, s.Fetch("*"): {"coordinator.b"},
		s.CoordinatorBlobs("b"): {"coordinator.b"}, s.Replicate("b"): {"coordinator.b"}, s.Inbox("b") +
			".>": {"coordinator.b"},
		">": nil, "coppice.>": nil, s.Work("*"): nil, s.Answers("*") + ".>": nil, "_INBOX.>": nil,
		s.AllResults("*", "*"): nil,
	}
	conns := make(map[string]*bus.Conn) // by user and name
	for _, who := range []string{"worker.w0", "worker.w9", "worker.a", "pool.gpu/gpu-1", "pool.gpu/gpu-9", "pool.gpu/w0",
		"serve.w0", "admin.w0", "submit.w0", "read.w0", "coordinator.b"} {
		user, name, _ := strings.Cut(who, "/")
		conns[who] = g.connect(ctx, user, name, "")
	}
	if _, err := bus.Connect(ctx, bus.Options{URLs: []string{strings.Replace(g.url("worker.w0"), "secret", "guess",
		1)}}); err == nil {
		t.Error("a wrong password is accepted")
	}
	g.take()
	try := func(what, who, subject string, may bool, do func(*bus.Conn) error) {
		t.Helper()
		if err := do(conns[who]); err != nil {
			t.Fatal(err)
		}
		if err := conns[who].Flush(ctx); err != nil { // the server has logged a refusal then
			t.Fatal(err)
		}
		if refused := g.take(); (len(refused) == 0) != may {
			t.Errorf("%s may %s %s: %v, want %v; refused is %q", who, what, subject, !may, may, refused)
		}
	}
	for who := range conns {
		for subject, may := range publish {
			try("publish", who, subject, slices.Contains(may, who), func(c *bus.Conn) error {
				return c.Send(subject, "", []byte{protocol.Version, 200})
			})
		}
		for subject, may := range subscribe {
			try("subscribe to", who, subject, slices.Contains(may, who), func(c *bus.Conn) error {
				_, err := c.Subscribe(subject, func(bus.Message) {})
				return err
			})
		}
	}
}
