package coordinator_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
)

// held is a connection that a process holds open while the trust in the process is taken away.
type held struct {
	kind  string
	alive func() bool
	again func() error // makes another connection; nil: the cluster trusts it
	close func()       // nil: nothing to do
}

// holder opens connections to the first coordinator and to a worker.
type holder struct {
	*secured
	ctx     context.Context
	metrics string     // address of the worker's HTTP server
	removed chan error // has the error of a coordinator that was removed
}

// folder issues a certificate of an authority, and returns its folder, which has the authorities of the cluster.
func (h *holder) folder(a *certtest.Authority, role certs.Role, name string, valid time.Duration) string {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), name)
	id := certs.Identity{Role: role, Name: name}
	if role == certs.User {
		id.Rights = "submit"
	}
	if _, err := a.Issue(dir, id, []string{"127.0.0.1"}, valid); err != nil {
		h.t.Fatal(err)
	}
	h.put(dir, h.get(h.sources["a"].Dir()))
	return dir
}

func (h *holder) get(dir string) []byte {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, certs.AuthorityFile))
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func (h *holder) put(dir string, authorities []byte) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, certs.AuthorityFile), authorities, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// request opens a connection with the certificate in a folder, and sends the beginning of a request.
// If an answer is due, it waits for the first line. The connection stays open.
func (h *holder) request(kind, dir, address, text string, answered bool) *held {
	h.t.Helper()
	one := &held{kind: kind, again: func() error {
		answer, err := browser(h.t, dir).Get("https://" + address + "/metrics")
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	}}
	config := &tls.Config{InsecureSkipVerify: true}
	if dir != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
		if err != nil {
			h.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		h.t.Fatalf("%s: %v", kind, err)
	}
	h.t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte(text)); err != nil {
		h.t.Fatalf("%s: %v", kind, err)
	}
	from := bufio.NewReader(c)
	if answered {
		if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			h.t.Fatalf("%s: %q, %v", kind, line, err)
		}
	}
	var ended atomic.Bool
	one.alive = func() bool { return !ended.Load() }
	go func() {
		defer ended.Store(true)
		for {
			line, err := from.ReadString('\n')
			if err != nil || !answered && strings.HasPrefix(line, "HTTP/1.1 4") { // an upload was refused midway
				return
			}
		}
	}()
	return one
}

// requests opens connections of HTTP: one with an answer, one with a stream, and one with half of an
// upload. header has the token of a caller without a certificate.
func (h *holder) requests(dir, header string) []*held {
	h.t.Helper()
	data := bytes.Repeat([]byte{7}, 100_000)
	sum := sha256.Sum256(data)
	at := h.at(0)
	head := func(request string) string {
		return request + " HTTP/1.1\r\nHost: " + at + "\r\n" + header
	}
	list := []*held{
		h.request("HTTP, stream", dir, at, head("GET /v1/jobs/waiting/changes")+"Connection: close\r\n\r\n", true),
		h.request("HTTP, upload", dir, at, head("PUT /v1/blobs/"+hex.EncodeToString(sum[:]))+"Content-Length: 100000\r\n\r\n"+
			string(data[:1000]), false),
	}
	if dir != "" { // without a certificate, anybody may hold a connection
		list = append(list, h.request("HTTP, idle", dir, at, head("GET /v1/cluster?local=true")+"\r\n", true))
	}
	return list
}

// losses counts how often a connection to NATS was lost.
type losses struct{ n atomic.Int64 }

func (*losses) Sent(int)        {}
func (*losses) Received(int)    {}
func (*losses) Reconnected()    {}
func (l *losses) Disconnected() { l.n.Add(1) }

// nats connects to NATS.
func (h *holder) nats(dir, role, name string) *held {
	h.t.Helper()
	source, err := certs.Open(dir, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	lost := new(losses)
	c, err := bus.Connect(h.ctx, bus.Options{URLs: []string{"nats://" + h.at(2)}, Name: name, TLS: source, Traffic: lost})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return &held{kind: "NATS, client of a " + role, alive: func() bool { return lost.n.Load() == 0 }, again: func() error {
		return refusal(h.t, h.at(2), dir, tls.VersionTLS13, probing)
	}, close: nil}
}

// coordinator opens the connections of a coordinator.
func (h *holder) coordinator(dir, name string) []*held {
	h.t.Helper()
	source, err := certs.Open(dir, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	cluster, err := h.client.Cluster(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := bus.StartServer(bus.ServerOptions{
		Name: name + "x", Host: "127.0.0.1", ClientPort: 0, RoutePort: -1, Cluster: cluster.ID,
		Routes: []string{"nats://" + h.at(3)}, TLS: source, Handshake: 10 * time.Second,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	end := sync.OnceFunc(server.Close)
	h.t.Cleanup(end)
	// A removed coordinator does not learn that its certificate is revoked, and keeps its routes to others of its own.
	routed := func() bool {
		return slices.ContainsFunc(server.Routes(), func(other string) bool { return other != name })
	}
	testkit.Until(h.t, "a route", routed)
	port := func(offset int) func() error {
		return func() error { return refusal(h.t, h.at(offset), dir, tls.VersionTLS13, probing) }
	}
	raft := h.request("Raft", dir, h.at(1), "", false)
	raft.again = port(1)
	return []*held{
		h.request("HTTP, coordinator", dir, h.at(0), "GET /v1/cluster?local=true HTTP/1.1\r\nHost: x\r\n\r\n", true),
		raft, h.nats(dir, "coordinator", name), {kind: "NATS, route", alive: routed, again: port(3), close: end},
	}
}

// all opens all connections of a user, a worker and a coordinator, whose folders it gets from a function.
func (h *holder) all(prefix string, folder func(role certs.Role, name string) string) (list []*held) {
	h.t.Helper()
	user := folder(certs.User, prefix+"u")
	list = append(list, h.requests(user, "")...)
	list = append(list, h.request("worker's HTTP", user, h.metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", true))
	list = append(list, h.nats(folder(certs.Worker, prefix+"w"), "worker", prefix+"w"))
	return append(list, h.coordinator(folder(certs.Coordinator, prefix+"c"), prefix+"c")...)
}

// start starts the cluster with two authorities, a worker and a job, which never ends. It returns the first
// authority in PEM.
func (h *holder) start(second *certtest.Authority) (only []byte) {
	h.t.Helper()
	equip := h.equip
	h.equip = func(c *worker.Config) {
		equip(c)
		c.Listen = "127.0.0.1:0"
	}
	h.source(certs.Worker, "w0")
	for _, p := range h.peers {
		h.source(certs.Coordinator, p.ID)
	}
	only = h.get(h.sources["a"].Dir())
	both := append(bytes.Clone(only), h.get(second.Folder(certs.User, "x"))...)
	for _, source := range h.sources {
		h.put(source.Dir(), both)
		source.Look()
	}
	for _, p := range h.peers {
		cfg := coordinator.Config{ID: p.ID, Dir: filepath.Join(h.dir, p.ID), Peers: h.peers,
			Heartbeat: 200 * time.Millisecond, Log: h.log.With("node", p.ID)}
		h.tune(&cfg)
		h.run(p.ID, func(ctx context.Context) error {
			err := coordinator.Run(ctx, cfg)
			if errors.Is(err, coordinator.ErrRemoved) {
				h.removed <- err
			}
			return err
		})
	}
	h.pause.Store(int64(20 * time.Millisecond))
	h.startWorker("w0")
	if _, err := h.client.Datasets().Import(h.ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		h.t.Fatal(err)
	}
	waiting := submission("waiting")
	waiting.Set["steps"] = "1000000000"
	if _, err := h.client.Jobs().Submit(h.ctx, waiting); err != nil {
		h.t.Fatal(err)
	}
	testkit.Until(h.t, "the worker", func() bool { return len(h.alive(h.ctx)) == 1 })
	h.metrics = h.workers(h.ctx)[0].Metrics
	return only
}

// takenWithin bounds the time from the loss of trust to the end of a connection. On an idle machine it is two
// seconds. Without a reason, connections end after ten seconds or more.
const takenWithin = 6 * time.Second

// take takes trust away, and checks that connections end soon, and that new ones are refused.
func (h *holder) take(what string, list []*held, away func()) {
	h.t.Helper()
	for _, one := range list {
		if !one.alive() {
			h.t.Fatalf("%s, %s: it ended before the trust was taken away", what, one.kind)
		}
	}
	away()
	began := time.Now()
	took := make(map[string]time.Duration)
	for len(took) < len(list) {
		for _, one := range list {
			if _, ended := took[one.kind]; !ended && !one.alive() {
				took[one.kind] = time.Since(began)
			}
		}
		if time.Since(began) > testkit.Limit {
			h.t.Fatalf("%s: only these have ended: %v", what, took)
		}
		if err := wait.For(h.ctx, 5*time.Millisecond); err != nil {
			h.t.Fatal(err)
		}
	}
	for kind, after := range took {
		h.t.Logf("%s | %s | %v", what, kind, after.Round(10*time.Millisecond))
		if after > takenWithin*time.Duration(testkit.Slowdown) {
			h.t.Errorf("%s, %s: it ended after %v, want at most %v", what, kind, after, takenWithin)
		}
	}
	for _, one := range list {
		if one.again != nil && one.again() == nil {
			h.t.Errorf("%s, %s: a new connection is accepted", what, one.kind)
		}
		if one.close != nil {
			one.close()
		}
	}
}

// tokens opens connections with a token.
func (h *holder) tokens(text string) []*held {
	h.t.Helper()
	list := h.requests("", "Authorization: Bearer "+text+"\r\n")
	for _, one := range list {
		one.again = func() error {
			_, err := h.asToken(text, h.peers[0].Port).Jobs().List(h.ctx, protocol.JobQuery{})
			return err
		}
	}
	return list
}

// issued returns a function that issues certificates of an authority. The function appends their folders to folders.
func (h *holder) issued(a *certtest.Authority, valid time.Duration) (issue func(certs.Role, string) string,
	folders *[]string) {
	folders = new([]string)
	return func(role certs.Role, name string) string {
		dir := h.folder(a, role, name, valid)
		*folders = append(*folders, dir)
		return dir
	}, folders
}

// removable waits until b leads, since the connections are to a, and until c may be removed.
func (h *holder) removable() {
	h.t.Helper()
	testkit.Until(h.t, "b to lead", func() bool {
		return h.leader(h.ctx) == "b" || h.client.Members().Transfer(h.ctx, "b") == nil
	})
	testkit.Until(h.t, "the removal to be possible", func() bool {
		m, err := h.client.Members().List(h.ctx)
		ready := err == nil && len(m.Members) == 3
		for i := 0; ready && i < 3; i++ {
			ready = m.Members[i].Alive && m.Members[i].Missing == 0
		}
		return ready
	})
}

// TestTrustIsTakenAway: whatever trust is taken away is taken away from open connections too, on every
// port, and new connections are refused. All other connections stay.
func TestTrustIsTakenAway(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	h := &holder{secured: s, ctx: ctx, removed: make(chan error, 1)}
	second := certtest.New(t)
	only := h.start(second)
	issue, _ := h.issued(s.authority, 24*time.Hour)
	epoch := h.epoch(ctx)
	trusted := slices.DeleteFunc(h.all("t", issue), func(one *held) bool {
		if one.close != nil {
			one.close() // the cluster must not hear of others from a server that cuts no connections
		}
		return one.kind != "HTTP, stream" && !strings.HasPrefix(one.kind, "NATS, client") // others end if nothing comes
	})

	text, made := s.token(ctx, protocol.TokenRequest{Role: "submit", Owner: "tom"})
	h.take("token revoked", h.tokens(text), func() {
		if _, err := (s.client.Tokens()).Revoke(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
	})
	expires := time.Now().Add(4 * time.Second)
	text, _ = s.token(ctx, protocol.TokenRequest{Role: "submit", Owner: "tom", Expires: expires.Unix()})
	h.take("token expired", h.tokens(text), func() { _ = wait.For(ctx, time.Until(expires.Truncate(time.Second))) })

	issue, folders := h.issued(s.authority, 24*time.Hour)
	h.take("certificate revoked", h.all("r", issue), func() {
		for _, dir := range *folders {
			source, err := certs.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.revoke(ctx, source)
		}
	})
	life := 4 * time.Second * time.Duration(testkit.Slowdown)
	ends := time.Now().Add(life)
	issue, _ = h.issued(s.authority, life)
	h.take("certificate expired", h.all("e", issue), func() { _ = wait.For(ctx, time.Until(ends)+time.Second) })
	issue, _ = h.issued(second, 24*time.Hour)
	h.take("authority removed", h.all("a", issue), func() {
		for _, source := range s.sources {
			h.put(source.Dir(), only)
		}
	})
	for _, one := range trusted {
		// On a busy machine the leader changes. A stream ends with its leader, and a coordinator that knows no
		// leader for a while disconnects its NATS clients.
		if !one.alive() && h.epoch(ctx) == epoch {
			t.Errorf("%s: the connection of a trusted process has ended", one.kind)
		}
	}

	h.removable()
	dir := filepath.Join(t.TempDir(), "c")
	err := os.CopyFS(dir, os.DirFS(s.sources["c"].Dir()))
	if err == nil {
		err = os.Chmod(filepath.Join(dir, certs.KeyFile), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.take("member removed", h.coordinator(dir, "c"), func() {
		m, err := s.client.Members().Remove(ctx, "c")
		if err != nil || len(m.Revoked) != 1 || m.Revoked[0].Serial != certs.Serial(s.sources["c"].Own()) {
			t.Errorf("%+v, %v", m, err)
		}
	})
	if err := testkit.Receive(t, "the end of the removed coordinator", h.removed); !strings.Contains(err.Error(),
		"coppice certs node") {
		t.Error(err)
	}
}
