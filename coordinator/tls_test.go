package coordinator_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
)

// secured is a cluster with TLS on every port.
type secured struct {
	*cluster
	authority *certtest.Authority
	sources   map[string]*certs.Source // by id
}

// secure prepares a cluster with certificates. None of its processes runs yet.
func secure(t *testing.T, coordinators int) *secured {
	t.Helper()
	s := &secured{cluster: prepare(t, coordinators), authority: certtest.New(t), sources: make(map[string]*certs.Source)}
	s.tune = func(c *coordinator.Config) { c.TLS = s.source(certs.Coordinator, c.ID) }
	s.equip = func(c *worker.Config) { c.TLS = s.source(certs.Worker, c.ID) }
	s.client = s.clientOf(s.source(certs.User, "ana"))
	return s
}

// source returns the certificates of a process, which are issued once.
func (s *secured) source(role certs.Role, name string) *certs.Source {
	if s.sources[name] == nil {
		s.sources[name] = s.authority.Source(role, name)
	}
	return s.sources[name]
}

// clientOf returns a client with certificates; nil: in the clear.
func (s *secured) clientOf(source *certs.Source) *client.Client {
	s.t.Helper()
	var servers []string
	for _, p := range s.peers {
		servers = append(servers, fmt.Sprintf("127.0.0.1:%d", p.Port))
	}
	c, err := client.NewWith(strings.Join(servers, ","), source)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	c.Patience = patience
	return c
}

// at returns an address of the first coordinator: its HTTP port and offset.
func (s *secured) at(offset int) string { return fmt.Sprintf("127.0.0.1:%d", s.peers[0].Port+offset) }

// TestRotation: all certificates and the authority are replaced while eight jobs run. Their models
// have the digests of --local, and the leader stays. Connections of the old authority are made again.
func TestRotation(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	specs := []protocol.Spec{eventful()}
	jobs := 8
	if testkit.Race {
		jobs = 4
	}
	for i := range jobs - 1 {
		spec := testSpec(map[string]string{"steps": "60", "patience": "1000", "trees": "2", "depth": "5"})
		spec.Name, spec.Seed = fmt.Sprintf("r%d", i), new(uint64(i+2))
		specs = append(specs, spec)
	}
	want := make(map[string]string)
	for _, spec := range specs {
		want[spec.Name] = localDigest(t, spec)
	}
	s := secure(t, 3)
	s.pause.Store(int64(2 * time.Millisecond)) // jobs also run while connections are made again
	equip, tune := s.equip, s.tune
	s.equip = func(c *worker.Config) {
		equip(c)
		c.Listen = "127.0.0.1:0"
	}
	s.tune = func(c *coordinator.Config) {
		tune(c)
		c.Heartbeat = time.Second // a busy machine changes no leader
	}
	s.startAll(2)
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs[1:] {
		if _, err := s.client.Jobs().Submit(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	var epoch uint64
	var elections int64
	end := s.train(ctx, specs[0], func() {
		epoch, elections = s.epoch(ctx), s.elections.Load()
		s.rotate(certtest.New(t))
	})
	if got := end.Models[0].Digest; got != want[specs[0].Name] {
		t.Errorf("digest %s, --local has %s", got, want[specs[0].Name])
	}
	for _, spec := range specs[1:] {
		end, err := s.client.Jobs().Watch(ctx, spec.Name, func(*protocol.JobInfo) {})
		if err != nil || end.State != protocol.Done || end.Models[0].Digest != want[spec.Name] {
			t.Errorf("job %s: %+v, --local has the digest %s; error %v", spec.Name, end, want[spec.Name], err)
		}
	}
	s.staysLed(ctx, epoch, elections)
	web := browser(t, s.sources["ana"].Dir())
	for _, w := range s.workers(ctx) {
		response, err := web.Get("https://" + w.Metrics + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(page), "\ncoppice_certificate_expires_seconds 7.7") {
			t.Errorf("worker %s, error %v: %s", w.ID, err, page)
		}
	}
}

// rotate replaces the files of all processes in three steps. Each process trusts the others at any time.
func (s *secured) rotate(next *certtest.Authority) {
	s.t.Helper()
	read := func(dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		return b
	}
	each := func(f func(source *certs.Source, newer string)) {
		for name, source := range s.sources {
			f(source, next.Folder(source.Identity().Role, name))
		}
		for _, source := range s.sources {
			before := source.Failures()
			if source.Look(); source.Failures() > before {
				s.t.Errorf("%s cannot use its new files", source.Identity())
			}
		}
	}
	write := func(source *certs.Source, name string, b []byte) {
		if err := os.WriteFile(filepath.Join(source.Dir(), name), b, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	each(func(source *certs.Source, newer string) {
		write(source, certs.AuthorityFile, append(read(source.Dir(), certs.AuthorityFile),
			read(newer, certs.AuthorityFile)...))
	})
	each(func(source *certs.Source, newer string) {
		write(source, certs.KeyFile, read(newer, certs.KeyFile))
		write(source, certs.CertFile, read(newer, certs.CertFile))
	})
	each(func(source *certs.Source, newer string) {
		write(source, certs.AuthorityFile, read(newer, certs.AuthorityFile))
	})
}

// browser returns a client of HTTP that shows the certificate in a folder; empty: none.
func browser(t *testing.T, dir string) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if dir != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
}

// refusal connects to a port with the certificate in a folder, and returns why the port
// refuses it. A port that refuses nothing for so long accepts the certificate.
func refusal(t *testing.T, address, dir string, version uint16, long time.Duration) error {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certs.CertFile), filepath.Join(dir, certs.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(testkit.Limit)); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, MaxVersion: version})
	if err := c.Handshake(); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	if _, err = c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// TestCertificatesOfOthers: each port refuses certificates of other roles, of another cluster
// with the same authority, and of another authority. It refuses TLS 1.2 as well.
func TestCertificatesOfOthers(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 1)
	s.startAll(1)
	s.leader(ctx)
	same := *s.authority.Authority
	same.Cluster = "other"
	foreign := *s.authority
	foreign.Authority = &same
	folders := map[string]string{
		"coordinator": s.authority.Folder(certs.Coordinator, "b"), "worker": s.authority.Folder(certs.Worker, "w"),
		"user":          s.authority.Folder(certs.User, "u"),
		"other cluster": foreign.Folder(certs.Coordinator, "c"), "other authority": certtest.New(t).
					Folder(certs.Coordinator, "d"),
	}
	for offset, port := range certs.Ports {
		at := map[string]int{"HTTP": 0, "Raft": 1, "NATS clients": 2, "NATS routes": 3}[port.Name]
		for who, dir := range folders {
			if offset == 0 {
				continue // HTTP answers with a text, see TestAnswersOfHTTP
			}
			good := slices.ContainsFunc(port.Roles, func(r certs.Role) bool { return string(r) == who })
			long := testkit.Limit
			if good {
				long = 500 * time.Millisecond
			}
			if err := refusal(t, s.at(at), dir, tls.VersionTLS13, long); (err == nil) != good {
				t.Errorf("%s: the certificate of %s: error %v", port.Name, who, err)
			}
		}
		if err := refusal(t, s.at(at), folders["coordinator"], tls.VersionTLS12, testkit.Limit); err == nil {
			t.Errorf("%s accepts TLS 1.2", port.Name)
		}
	}
	for name, good := range map[string]bool{"w": true, "other": false} {
		conn, err := bus.Connect(ctx, bus.Options{URLs: []string{"nats://" + s.at(2)}, Name: name,
			TLS: s.authority.Source(certs.Worker, "w")})
		if (err == nil) != good {
			t.Errorf("NATS, the worker w under the name %s: error %v", name, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// TestAnswersOfHTTP: callers hear what to do.
func TestAnswersOfHTTP(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := secure(t, 1)
	s.startAll(0)
	s.leader(ctx)
	clear := s.clientOf(nil)
	clear.Patience = 0
	if _, err := clear.Cluster(ctx); err == nil || !strings.Contains(err.Error(), "this command does not; give "+
		"--tls-dir") {
		t.Errorf("a client in the clear: %v", err)
	}
	impostor := s.clientOf(certtest.New(t).Source(certs.User, "ana"))
	impostor.Patience = 0
	if _, err := impostor.Cluster(ctx); err == nil || !strings.Contains(err.Error(), "no authority in") ||
		!strings.Contains(err.Error(), "coppice://test/coordinator/a") {
		t.Errorf("a client with another authority: %v", err)
	}
	anonymous := browser(t, "")
	testkit.Until(t, "the coordinator to be ready", func() bool {
		response, err := anonymous.Get("https://" + s.at(0) + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/v1/cluster": 401,
		"/v1/self": 401, "/v1/backup": 401, "/ui": 401, "/x": 401, "/debug/pprof/": 401} {
		response, err := anonymous.Get("https://" + s.at(0) + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%s without a certificate: %s", path, response.Status)
		}
	}
}

// TestConnectionsWithoutHandshake: 200 connections to each port that never finish a handshake
// stop neither a job nor another coordinator.
func TestConnectionsWithoutHandshake(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	spec := testSpec(map[string]string{"steps": lasting(200), "trees": "2"})
	want := localDigest(t, spec)
	s := secure(t, 3)
	s.startCoordinator("a")
	testkit.Until(t, "the ports of a", func() bool {
		c, err := net.Dial("tcp", s.at(1))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for _, offset := range []int{0, 1} { // before the others are there
		silence(t, s.at(offset), 200)
	}
	s.startCoordinator("b")
	s.startCoordinator("c")
	s.leader(ctx)
	for offset := range certs.Ports {
		silence(t, s.at(offset), 200)
	}
	s.startWorker("w0")
	if _, err := s.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := s.train(ctx, spec, nil).Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
}

// silence opens connections that say nothing until the test ends.
func silence(t *testing.T, address string, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

// TestMixedStart: a coordinator in the clear and one with TLS found no cluster. Each says
// which side is in the clear.
func TestMixedStart(t *testing.T) {
	t.Parallel()
	s := secure(t, 3)
	tune, source := s.tune, s.source(certs.Coordinator, "a")
	s.tune = func(c *coordinator.Config) {
		if c.ID == "a" {
			tune(c)
		}
	}
	s.startCoordinator("a")
	s.startCoordinator("b")
	says := func(address string, source *certs.Source, text string) {
		t.Helper()
		web := &http.Client{Transport: source.Transport(&http.Transport{DisableKeepAlives: true})}
		last := ""
		defer func() { t.Logf("%s says %s", address, last) }()
		testkit.Until(t, "the text "+text, func() bool {
			response, err := web.Get(source.URLScheme() + "://" + address + "/v1/self")
			if err != nil {
				last = err.Error()
				return false
			}
			defer response.Body.Close()
			b, _ := io.ReadAll(response.Body)
			last = string(b)
			return strings.Contains(last, text)
		})
	}
	says(s.at(0), source, "the server uses no TLS, but this process does")
	says(fmt.Sprintf("127.0.0.1:%d", s.peers[1].Port), nil, "the server uses TLS, but this process does not")
}

// TestExposed: an address that other machines reach needs certificates or --insecure.
func TestExposed(t *testing.T) {
	t.Parallel()
	block := freeBlock(t)
	for name, c := range map[string]struct {
		config coordinator.Config
		good   bool
	}{
		"all interfaces": {coordinator.Config{Listen: coordinator.Listen{HTTP: fmt.Sprintf("0.0.0.0:%d", block)}},
			false},
		"all of IPv6":   {coordinator.Config{Listen: coordinator.Listen{Raft: fmt.Sprintf("[::]:%d", block+1)}}, false},
		"an empty host": {coordinator.Config{Listen: coordinator.Listen{NATS: fmt.Sprintf(":%d", block+2)}}, false},
		"routes": {coordinator.Config{Listen: coordinator.Listen{Routes: fmt.Sprintf("0.0.0.0:%d", block+3)}},
			false},
		"a cluster to join": {coordinator.Config{Join: []string{"127.0.0.1:1"},
			Listen: coordinator.Listen{HTTP: fmt.Sprintf("0.0.0.0:%d", block)}}, false},
		"an external NATS": {coordinator.Config{NATS: "nats://192.0.2.1:4222"}, false},
		"loopback":         {coordinator.Config{}, true},
		"insecure": {coordinator.Config{Exposure: coordinator.Exposure{Insecure: true},
			Listen: coordinator.Listen{HTTP: fmt.Sprintf("0.0.0.0:%d", block)}}, true},
		"certificates": {coordinator.Config{TLS: certtest.New(t).Source(certs.Coordinator, "a"),
			Listen: coordinator.Listen{HTTP: fmt.Sprintf("0.0.0.0:%d", block)}}, true},
		"another certificate": {coordinator.Config{TLS: certtest.New(t).Source(certs.Coordinator, "b")}, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := c.config
		cfg.ID, cfg.Dir, cfg.Peers, cfg.Up = "a", t.TempDir(),
			[]coordinator.Peer{{ID: "a", Host: "127.0.0.1", Port: block}},
			func(context.Context, func(context.Context) error) { cancel() }
		err := coordinator.Run(ctx, cfg)
		cancel()
		if good := err == nil; good != c.good || !good && !errors.Is(err, coordinator.ErrUsage) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
