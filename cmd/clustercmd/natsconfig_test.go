package clustercmd

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// early makes the handshake of TLS before the first bytes of NATS.
type early struct{ config *tls.Config }

// Dial implements nats.CustomDialer.
func (e early) Dial(network, address string) (net.Conn, error) {
	return tls.Dial(network, address, e.config)
}

// SkipTLSHandshake tells the library that connections have TLS already.
func (early) SkipTLSHandshake() bool { return true }

// TestNATSConfig: an external server with the printed configuration permits the subjects of
// a certificate and no other, and refuses certificates that the configuration lacks.
func TestNATSConfig(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "certs")
	cmdtest.Works(t, "certs", "init", "--ca-dir", ca)
	for _, name := range []string{"nats", "a"} {
		cmdtest.Works(t, "certs", "node", name, "--role", "coordinator", "--ca-dir", ca)
	}
	for _, name := range []string{"w1", "w2"} {
		cmdtest.Works(t, "certs", "node", name, "--role", "worker", "--ca-dir", ca)
	}
	text := cmdtest.Works(t, "certs", "nats-config", "--coordinator", "a", "--worker", "w1", "--tls-dir",
		filepath.Join(ca, "nats"))
	opts, err := server.ProcessConfigFile(cmdtest.Write(t, dir, "nats.conf", text))
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.NoSigs, opts.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(testkit.Limit) {
		t.Fatal("the server does not start")
	}
	connect := func(who string) (*nats.Conn, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(ca, who, certs.CertFile), filepath.Join(ca, who, certs.KeyFile))
		if err != nil {
			t.Fatal(err)
		}
		url := "nats://" + s.Addr().String()
		return nats.Connect(url, nats.SetCustomDialer(early{&tls.Config{InsecureSkipVerify: true,
			Certificates: []tls.Certificate{pair}}}), nats.NoReconnect(),
			nats.Timeout(10*time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	}
	if _, err := connect("w2"); err == nil {
		t.Error("a worker that the configuration lacks connects")
	}
	for who, subjects := range map[string]map[string]bool{
		"a": {"coppice.7f.lead": true, "coppice.7f.work.w9": true, "coppice.7f.beat.w1": false},
		"w1": {"coppice.7f.beat.w1": true, "coppice.7f.beat.w2": false, "coppice.7f.lead": false, "coppice.7f.work.w1": false,
			"other": false},
	} {
		c, err := connect(who)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		defer c.Close()
		for subject, may := range subjects {
			before := c.LastError()
			if err := c.Publish(subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := c.FlushTimeout(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			if permitted := c.LastError() == before; permitted != may {
				t.Errorf("%s may publish %s: %v", who, subject, permitted)
			}
		}
	}
	for _, args := range [][]string{{"certs", "nats-config"}, {"certs", "nats-config", "--coordinator", "a.>"}} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitUsage || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d %s", args, e.Code, e.Stderr)
		}
	}
}
