package certs_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// noLeak fails the test if it leaves goroutines behind.
func noLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// serve echoes bytes with the certificates of source until the test ends.
func serve(t *testing.T, source *certs.Source, terms certs.Terms) (address string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if terms.Within == 0 {
		terms.Within = time.Minute
	}
	l := certs.Listen(inner, source, terms)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return inner.Addr().String()
}

// echo sends a byte to a server that expects role, and waits for it.
func echo(t *testing.T, source *certs.Source, role certs.Role, address string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := (&certs.Dialer{Source: source, Roles: []certs.Role{role}}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

// TestVerify: the chain, the cluster and the role count, on both sides.
func TestVerify(t *testing.T) {
	noLeak(t)
	a, foreign, impostor := certtest.New(t), certtest.Of(t, "other"), certtest.New(t)
	sameCA := *a
	same := *a.Authority
	same.Cluster = "other"
	sameCA.Authority = &same
	address := serve(t, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortRaft})
	if err := echo(t, a.Source(certs.Coordinator, "b"), certs.Coordinator, address); err != nil {
		t.Error(err)
	}
	for name, source := range map[string]*certs.Source{
		"a worker": a.Source(certs.Worker, "w"), "a user": a.Source(certs.User, "u"),
		"another cluster":                   foreign.Source(certs.Coordinator, "b"),
		"another authority":                 impostor.Source(certs.Coordinator, "b"),
		"another cluster of this authority": sameCA.Source(certs.Coordinator, "c"),
	} {
		if err := echo(t, source, certs.Coordinator, address); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	var peer *certs.PeerError
	err := echo(t, sameCA.Source(certs.Worker, "x"), certs.Coordinator, address)
	if !errors.As(err, &peer) || peer.Found != "coppice://test/coordinator/a" ||
		peer.Expected != "coppice://other/coordinator/*" || strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("a server of another cluster: %v", err)
	}
	err = echo(t, a.Source(certs.Worker, "w"), certs.Serve, address)
	if !errors.As(err, &peer) || peer.Expected != "coppice://test/serve/*" {
		t.Errorf("a server of another role: %v", err)
	}
	err = echo(t, a.Source(certs.Worker, "w"), certs.Coordinator, address)
	if err == nil || !strings.Contains(err.Error(), "the server refuses the certificate of this process, "+
		"coppice://test/worker/w") {
		t.Errorf("a client of another role: %v", err)
	}
}

// TestClear: who meets a side in the clear says so.
func TestClear(t *testing.T) {
	a := certtest.New(t)
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.NotFoundHandler()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	if err := echo(t, a.Source(certs.User, "u"), certs.Coordinator, l.Addr().String()); !errors.Is(err, certs.ErrClear) {
		t.Errorf("a server in the clear: %v", err)
	}
	address := serve(t, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortHTTP, Late: true})
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if b, err := io.ReadAll(response.Body); response.StatusCode != http.StatusBadRequest ||
		!strings.Contains(string(b), "HTTPS") {
		t.Errorf("a client in the clear: %s %q, %v", response.Status, b, err)
	}
}

// TestOldVersion: TLS 1.2 is refused.
func TestOldVersion(t *testing.T) {
	a := certtest.New(t)
	address := serve(t, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortHTTP})
	dir := a.Folder(certs.Coordinator, "b")
	pair, err := tls.LoadX509KeyPair(dir+"/"+certs.CertFile, dir+"/"+certs.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	for version, good := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", address, &tls.Config{MaxVersion: version, InsecureSkipVerify: true,
			Certificates: []tls.Certificate{pair}})
		if (err == nil) != good {
			t.Errorf("%s: error %v", tls.VersionName(version), err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// TestSilentConnections: connections that never finish the handshake stop nobody.
func TestSilentConnections(t *testing.T) {
	noLeak(t)
	a := certtest.New(t)
	address := serve(t, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortHTTP, Within: time.Minute})
	client := a.Source(certs.Worker, "w")
	for range 300 { // more than may be in the handshake at a time
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := echo(t, client, certs.Coordinator, address); err != nil {
		t.Error(err)
	}
	brief := serve(t, a.Source(certs.Coordinator, "b"), certs.Terms{Port: certs.PortHTTP, Within: 50 * time.Millisecond})
	c, err := net.Dial("tcp", brief)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil { // the server ends it
		t.Errorf("%d bytes, error %v", n, err)
	}
}

// TestBusyHost: a host with many connections takes no place of another host.
func TestBusyHost(t *testing.T) {
	testkit.WithoutRace(t)
	noLeak(t)
	a := certtest.New(t)
	client := a.Source(certs.Worker, "w")
	address := serve(t, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortHTTP, Within: time.Minute})
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	oldest, err := other.Dial("tcp", address)
	if err != nil {
		t.Skip("this system has no second loopback address: ", err)
	}
	defer oldest.Close()
	for range 300 { // more than may be in the handshake at a time
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	greet := func(dial func(context.Context, string, string) (net.Conn, error)) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return (&certs.Dialer{Source: client, Roles: []certs.Role{certs.Coordinator}, Dial: dial}).
			DialContext(ctx, "tcp", address)
	}
	if _, err := greet(func(context.Context, string, string) (net.Conn, error) { return oldest, nil }); err != nil {
		t.Error("the oldest connection is of another host, and was ended:", err)
	}
	var open []net.Conn
	for {
		c, err := greet(nil)
		if err != nil {
			break
		}
		defer c.Close()
		if open = append(open, c); len(open) > 2000 {
			t.Fatal("a host may have any number of connections")
		}
	}
	if len(open) < 700 || len(open) > 1024 {
		t.Errorf("%d connections of a host are open, want 1,024 with the silent connections", len(open))
	}
	c, err := greet(other.DialContext)
	if err != nil {
		t.Fatal("another host is refused:", err)
	}
	defer c.Close()
	for _, c := range open {
		c.Close()
	}
	for { // the server may see later that a connection has ended
		if c, err := greet(nil); err == nil {
			c.Close()
			return
		}
		if wait.For(t.Context(), 10*time.Millisecond) != nil {
			t.Fatal("the host is still refused after its connections have ended")
		}
	}
}

// TestNewConnections: after a change of its certificate, a client sends no request over connections
// with the old one.
func TestNewConnections(t *testing.T) {
	a := certtest.New(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, ConnContext: certs.ConnContext,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, certs.PeerOf(r).Serial)
		})}
	t.Cleanup(func() { web.Close() })
	secure := certs.Listen(inner, a.Source(certs.Coordinator, "a"), certs.Terms{Port: certs.PortHTTP, Late: true,
		Within: time.Minute})
	go func() { _ = web.Serve(secure) }()
	source := a.Source(certs.Worker, "w")
	client := &http.Client{Transport: source.Transport(new(http.Transport))}
	defer client.CloseIdleConnections()
	for range 2 {
		response, err := client.Get("https://" + inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(response.Body)
		response.Body.Close()
		if want := certs.Serial(source.Own()); err != nil || string(b) != want {
			t.Errorf("the request has the certificate %s, want %s; error %v", b, want, err)
		}
		a.Folder(certs.Worker, "w")
		source.Look()
	}
}

// TestAuthorityIsTakenAway: connections end on either side if the authority of the other side's certificate
// leaves ca.crt. Others stay. Watch finds the change itself.
func TestAuthorityIsTakenAway(t *testing.T) {
	noLeak(t)
	old, next := certtest.New(t), certtest.New(t)
	only := contents(t, next.Folder(certs.User, "x")+"/"+certs.AuthorityFile)
	both := append(contents(t, old.Folder(certs.User, "x")+"/"+certs.AuthorityFile), only...)
	open := func(a *certtest.Authority, role certs.Role, name string) *certs.Source {
		dir := a.Folder(role, name)
		write(t, dir+"/"+certs.AuthorityFile, both)
		source, err := certs.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	server, thief := open(next, certs.Coordinator, "a"), open(old, certs.Coordinator, "b")
	client, guest := open(next, certs.Worker, "w"), open(old, certs.Worker, "v")
	ends := func(source *certs.Source, address string) <-chan struct{} {
		c, err := (&certs.Dialer{Source: source, Roles: []certs.Role{certs.Coordinator}}).DialContext(t.Context(),
			"tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.Read(make([]byte, 1)) // until it ends
		}()
		return ended
	}
	mine, foreign := serve(t, server, certs.Terms{Port: certs.PortHTTP}),
		serve(t, thief, certs.Terms{Port: certs.PortHTTP})
	stays, accepted, made := ends(client, mine), ends(guest, mine), ends(client, foreign)
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	for _, source := range []*certs.Source{server, client} {
		watch.Go(func() { source.Watch(ctx) })
	}
	t.Cleanup(func() { cancel(); watch.Wait() })
	for _, source := range []*certs.Source{server, client} {
		write(t, source.Dir()+"/"+certs.AuthorityFile, only)
	}
	testkit.Receive(t, "the end of the accepted connection", accepted)
	testkit.Receive(t, "the end of the connection that was made", made)
	select {
	case <-stays:
		t.Error("a connection of the other authority has ended")
	default:
	}
}
