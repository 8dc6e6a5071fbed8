package coordinator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// cutWithin bounds the time from the revocation or the end of a certificate to the end of its
// connections.
const cutWithin = 2 * time.Second

// probing is how long a port has to refuse a certificate.
const probing = time.Second

// revoke revokes the certificate of a source.
func (s *secured) revoke(ctx context.Context, source *certs.Source) {
	s.t.Helper()
	r := protocol.Revocation{Serial: certs.Serial(source.Own()), Identity: source.Identity().String(),
		Until: source.Expires().Unix()}
	if _, err := s.client.Certificates().Revoke(ctx, r); err != nil {
		s.t.Fatal(err)
	}
}

// port returns the address of coordinator i: its HTTP port and offset.
func (s *secured) port(i, offset int) string {
	return fmt.Sprintf("127.0.0.1:%d", s.peers[i].Port+offset)
}

// clients connects to NATS of each coordinator as a worker.
func (s *secured) clients(ctx context.Context, source *certs.Source) (list []*bus.Conn) {
	s.t.Helper()
	for i := range s.peers {
		c, err := bus.Connect(ctx, bus.Options{URLs: []string{"nats://" + s.port(i, 2)}, Name: source.Identity().Name,
			TLS: source})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(c.Close)
		list = append(list, c)
	}
	return list
}

// cut waits until all clients are disconnected, and checks that it does not take longer than
// cutWithin from a time on. A busy machine has more time.
func cut(t *testing.T, from time.Time, list []*bus.Conn) {
	t.Helper()
	for i, c := range list {
		testkit.Until(t, fmt.Sprintf("the end of connection %d", i), func() bool { return !c.Connected() })
	}
	if took := time.Since(from); took > cutWithin*time.Duration(testkit.Slowdown) {
		t.Errorf("the connections ended after %v, want at most %v", took, cutWithin)
	}
}

// TestRevokedWorker: while a job runs, the certificate of one of two workers is revoked. All
// coordinators cut the connections of the worker and refuse it. The job ends with the digest of
// --local.
func TestRevokedWorker(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	spec := eventful()
	want := localDigest(t, spec)
	s := secure(t, 3)
	s.startAll(2)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "two workers", func() bool { return len(s.alive(ctx)) == 2 })
	w1 := s.sources["w1"]
	end := s.train(ctx, spec, func() {
		list := s.clients(ctx, w1)
		s.revoke(ctx, w1)
		cut(t, time.Now(), list)
		for i := range s.peers {
			if err := refusal(t, s.port(i, 2), w1.Dir(), tls.VersionTLS13, probing); err == nil {
				t.Errorf("NATS of %s accepts the revoked certificate", s.peers[i].ID)
			}
		}
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	testkit.Until(t, "the loss of the worker", func() bool { return strings.Join(s.alive(ctx), " ") == "w0" })
	list, err := s.client.Certificates().List(ctx)
	if err != nil || len(list) != 1 || list[0].Serial != certs.Serial(w1.Own()) ||
		list[0].Identity != "coppice://test/worker/w1" {
		t.Errorf("revoked are %+v: %v", list, err)
	}
	s.authority.Folder(certs.Worker, "w1")
	if w1.Look(); certs.Serial(w1.Own()) == list[0].Serial {
		t.Fatal("the worker has no other certificate")
	}
	testkit.Until(t, "the worker with another certificate", func() bool { return len(s.alive(ctx)) == 2 })
}

// alive lists the workers that are alive.
func (s *secured) alive(ctx context.Context) (names []string) {
	for _, w := range s.workers(ctx) {
		if w.State == "alive" {
			names = append(names, w.ID)
		}
	}
	return names
}

// TestExpiredWorker: the connections of a worker end with its certificate, and the worker is
// refused from then on. A job is computed by the other worker.
func TestExpiredWorker(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	spec := testSpec(map[string]string{"steps": lasting(200), "trees": "2"})
	want := localDigest(t, spec)
	s := secure(t, 3)
	s.startAll(1)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "w1")
	if _, err := s.authority.Issue(dir, certs.Identity{Role: certs.Worker, Name: "w1"}, nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	source, err := certs.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.sources["w1"] = source
	s.startWorker("w1")
	list := s.clients(ctx, source)
	if left := time.Until(source.Expires()); left < 0 {
		t.Skipf("the machine is too busy: the certificate ended %v before the worker was connected", -left)
	}
	if err := wait.For(ctx, time.Until(source.Expires())); err != nil {
		t.Fatal(err)
	}
	cut(t, source.Expires(), list)
	if err := refusal(t, s.port(0, 2), dir, tls.VersionTLS13, probing); err == nil {
		t.Error("NATS accepts the certificate after its end")
	}
	if got := s.train(ctx, spec, nil).Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	if names := s.alive(ctx); strings.Join(names, " ") != "w0" {
		t.Errorf("alive are %v", names)
	}
}

// TestRevokedUser: the streams of a user end on every coordinator once the certificate is
// revoked, and so do idle connections. The next request is refused.
func TestRevokedUser(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	s.startAll(0)
	s.leader(ctx)
	sam := s.authority.User("sam", "submit")
	user := s.clientOf(sam)
	if _, err := user.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	job, err := user.Jobs().Submit(ctx, eventful()) // it waits for a worker
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan time.Time, len(s.peers))
	web := &http.Client{Transport: sam.Transport(new(http.Transport))}
	for i := range s.peers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/v1/jobs/%d/changes", s.port(i, 0),
			job.ID), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%+v, error %v", answer, err)
		}
		defer answer.Body.Close()
		lines := bufio.NewReader(answer.Body)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, lines) // until it ends
			ended <- time.Now()
		}()
	}
	s.revoke(ctx, sam)
	revoked := time.Now()
	for range s.peers {
		if took := testkit.Receive(t, "the end of a stream", ended).Sub(revoked); took > cutWithin*
			time.Duration(testkit.Slowdown) {
			t.Errorf("a stream ended after %v, want at most %v", took, cutWithin)
		}
	}
	user.Patience = 0
	if _, err := user.Cluster(ctx); client.IsNotFound(err) || err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("the next request: %v", err)
	}
	for i := range s.peers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.port(i, 0)+"/v1/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(answer.Body)
		if answer.Body.Close(); answer.StatusCode != http.StatusForbidden || !strings.Contains(string(b), "revoked") {
			t.Errorf("the next request at %s: %s %s", s.peers[i].ID, answer.Status, b)
		}
	}
	if _, err := s.client.Certificates().Revoke(ctx,
		protocol.Revocation{Serial: certs.Serial(s.sources["ana"].Own())}); err == nil ||
		!strings.Contains(err.Error(), "another certificate") {
		t.Errorf("an admin that revokes its own certificate: %v", err)
	}
}

// TestRevokedCoordinator: Raft and routes refuse a coordinator with a revoked certificate, and
// their connections end. The others go on.
func TestRevokedCoordinator(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 3)
	s.startAll(1)
	leader := s.leader(ctx)
	testkit.Until(t, "all coordinators", func() bool { return s.hears(0) && s.hears(1) && s.hears(2) })
	victim := 0
	if s.peers[0].ID == leader {
		victim = 1
	}
	source := s.sources[s.peers[victim].ID]
	for i := range s.peers {
		for offset := range 4 {
			if err := refusal(t, s.port(i, offset), source.Dir(), tls.VersionTLS13, probing); offset > 0 && err != nil {
				t.Fatalf("before: %v", err)
			}
		}
	}
	s.revoke(ctx, source)
	revoked := time.Now()
	testkit.Until(t, "the coordinator to hear no leader", func() bool { return !s.hears(victim) })
	t.Logf("the coordinator hears no leader after %v", time.Since(revoked))
	for i := range s.peers {
		for offset := 1; i != victim && offset < 4; offset++ {
			if err := refusal(t, s.port(i, offset), source.Dir(), tls.VersionTLS13, probing); err == nil {
				t.Errorf("port %d of %s accepts the revoked certificate", offset, s.peers[i].ID)
			}
		}
	}
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Errorf("the others do not go on: %v", err)
	}
}

// hears reports whether coordinator i says that it hears a leader.
func (s *secured) hears(i int) bool {
	web := &http.Client{Transport: s.sources["ana"].Transport(&http.Transport{DisableKeepAlives: true})}
	answer, err := web.Get("https://" + s.port(i, 0) + "/readyz?blobs=any")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
