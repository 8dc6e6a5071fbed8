package netlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asChild makes the test binary a process on a host.
const asChild = "NETLAB_TEST_AS_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "":
		os.Exit(m.Run())
	case "attached":
		report(attached())
	case "alone":
		report(interfaces())
	}
}

// report is how a child ends: what it found, as JSON.
func report(found any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(found)
}

func child(how string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asChild+"="+how)
	c.Stderr = os.Stderr
	return c
}

// lab makes a network, where there can be one.
func lab(t *testing.T, settings string) *Network {
	t.Helper()
	var s Settings
	if settings != "" {
		var err error
		if s, err = Parse(settings); err != nil {
			t.Fatal(err)
		}
	}
	n, err := New(s, 1)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func host(t *testing.T, n *Network, name string) *Host {
	t.Helper()
	h, err := n.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// echo answers what it is sent on a port of a host.
func echo(t *testing.T, h *Host, port int) {
	t.Helper()
	var l net.Listener
	if err := h.Do(func() (err error) { l, err = net.Listen("tcp", at(h, port)); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
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
}

func at(h *Host, port int) string { return net.JoinHostPort(h.Address(), strconv.Itoa(port)) }

// dial connects from one host to a port of another.
func dial(from, to *Host, port int, within time.Duration) (c net.Conn, err error) {
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", at(to, port), within)
		return err
	})
	return c, err
}

// connect is dial where it must succeed.
func connect(t *testing.T, from, to *Host, port int) net.Conn {
	t.Helper()
	c, err := dial(from, to, port, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends some bytes, waits until they are back, and returns how long that took.
func exchange(t *testing.T, c net.Conn, size int) time.Duration {
	t.Helper()
	began := time.Now()
	sent, back := make([]byte, size), make([]byte, size)
	for i := range sent {
		sent[i] = byte(i * i)
	}
	go func() { _, _ = c.Write(sent) }()
	if err := c.SetReadDeadline(began.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, back); err != nil {
		t.Fatal(err)
	}
	if string(sent) != string(back) {
		t.Fatal("other bytes came back")
	}
	return time.Since(began)
}

// Bytes pass, through every fault that TCP mends, and never faster than the round trip.
func TestHostsReachEachOther(t *testing.T) {
	for _, settings := range []string{"", "rtt=40ms", "rtt=10ms,jitter=3ms,loss=3%,duplicate=5%"} {
		t.Run(settings, func(t *testing.T) {
			n := lab(t, settings)
			a, b := host(t, n, "a"), host(t, n, "b")
			if again := host(t, n, "a"); again != a {
				t.Error("the host of a name is made again")
			}
			echo(t, b, 80)
			echo(t, a, 80)
			c := connect(t, a, b, 80)
			if took := exchange(t, c, 100); took < n.settings.RTT {
				t.Errorf("there and back in %v: the round trip is %v", took, n.settings.RTT)
			}
			exchange(t, c, 200_000)
			exchange(t, connect(t, b, a, 80), 100)
		})
	}
}

// A thin link takes the time that its bits take.
func TestThinLink(t *testing.T) {
	n := lab(t, "rate=8Mbit")
	a, b := host(t, n, "a"), host(t, n, "b")
	echo(t, b, 80)
	if took := exchange(t, connect(t, a, b, 80), 500_000); took < 450*time.Millisecond {
		t.Errorf("500,000 bytes at 1,000,000 a second in %v", took)
	}
}

// blocked is how long something that is cut is seen not to pass.
const blocked = 300 * time.Millisecond

// A cut stops one direction, one pair, one port; and passes again when it is healed.
func TestCuts(t *testing.T) {
	n := lab(t, "")
	a, b, c := host(t, n, "a"), host(t, n, "b"), host(t, n, "c")
	for _, h := range []*Host{a, b, c} {
		echo(t, h, 80)
		echo(t, h, 81)
	}
	passes := func(from, to *Host, port int) bool {
		conn, err := dial(from, to, port, blocked)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	open := connect(t, a, b, 80)
	exchange(t, open, 10)
	n.Cut(Cut{From: "a", To: "b", Ports: []uint16{80}})
	for _, x := range []struct {
		from, to *Host
		port     int
		want     bool
	}{
		{a, b, 80, false}, {b, a, 80, false /* the answers have the port */}, {a, b, 81, true}, {b, a, 81, true},
		{a, c, 80, true}, {c, b, 80, true},
	} {
		if got := passes(x.from, x.to, x.port); got != x.want {
			t.Errorf("%s to %s:%d passes: %v", x.from.Name, x.to.Name, x.port, got)
		}
	}
	n.Heal()
	exchange(t, open, 10) // what was open goes on
	n.Cut(Cut{To: "c"}, Cut{From: "c"})
	if passes(a, c, 80) || passes(c, a, 81) || !passes(a, b, 80) {
		t.Error("a host that is cut off is reached, or another is not")
	}
	n.Heal()
	exchange(t, connect(t, a, c, 80), 10)
}

// One direction alone is cut: what is sent against it arrives.
func TestCutOneWay(t *testing.T) {
	n := lab(t, "")
	a, b := host(t, n, "a"), host(t, n, "b")
	var l net.PacketConn
	if err := b.Do(func() (err error) { l, err = net.ListenPacket("udp", at(b, 80)); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var c net.Conn
	if err := a.Do(func() (err error) { c, err = net.Dial("udp", at(b, 80)); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	receive := func(p interface {
		SetReadDeadline(time.Time) error
	}, read func([]byte) error, within time.Duration) error {
		_ = p.SetReadDeadline(time.Now().Add(within))
		return read(make([]byte, 100))
	}
	there := func(within time.Duration) error {
		_, _ = c.Write([]byte("there"))
		return receive(l, func(b []byte) error { _, _, err := l.ReadFrom(b); return err }, within)
	}
	back := func(within time.Duration) error {
		_, _ = l.WriteTo([]byte("back"), c.LocalAddr())
		return receive(c, func(b []byte) error { _, err := c.Read(b); return err }, within)
	}
	n.Cut(Cut{From: "a", To: "b"})
	if err := back(time.Minute); err != nil {
		t.Errorf("against the cut: %v", err)
	}
	if there(blocked) == nil {
		t.Error("it passes where it is cut")
	}
	n.Heal()
	if err := there(time.Minute); err != nil {
		t.Errorf("healed: %v", err)
	}
}

// A process on a host has its address and loopback, and nothing of the machine's.
func TestStart(t *testing.T) {
	n := lab(t, "")
	a := host(t, n, "a")
	c := child("alone")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(c); err != nil {
		t.Fatal(err)
	}
	var has []string
	err = json.NewDecoder(out).Decode(&has)
	if err = errors.Join(err, c.Wait()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(has, " "); got != "127.0.0.1/8 10.77.0.1/24" {
		t.Errorf("it has %s", got)
	}
}

// interfaces lists the IPv4 addresses that this process has.
func interfaces() (list []string, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			list = append(list, a.String())
		}
	}
	return list, err
}

// farAway is a round trip that nothing else takes as long as.
const farAway = time.Second

// seen is what a process that Enter moved finds.
type seen struct {
	Has    []string
	Far    float64 // seconds of an exchange by the first address
	Near   float64 // by the second
	Cut    bool    // the first does not pass a cut
	Direct bool    // the second does
}

// attached is a process that is a host itself.
func attached() (s seen, err error) {
	if err := Enter(); err != nil {
		return s, err
	}
	n, err := New(Settings{RTT: farAway}, 1)
	if err != nil {
		return s, err
	}
	first, second, err := n.Attach("clients", "observer")
	if err != nil {
		return s, err
	}
	b, err := n.Host("b")
	if err != nil {
		return s, err
	}
	var l net.Listener
	if err := b.Do(func() (err error) { l, err = net.Listen("tcp", at(b, 80)); return err }); err != nil {
		return s, err
	}
	defer l.Close()
	if s.Has, err = interfaces(); err != nil {
		return s, err
	}
	handshake := func(from *Host, within time.Duration) (float64, error) {
		d := net.Dialer{Timeout: within}
		if from != nil {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from.Address())}
		}
		began := time.Now()
		c, err := d.Dial("tcp", at(b, 80))
		if err == nil {
			defer c.Close()
			if local, _, _ := net.SplitHostPort(c.LocalAddr().String()); from == nil && local != first.Address() {
				err = fmt.Errorf("by default it is %s", local)
			}
		}
		return time.Since(began).Seconds(), err
	}
	if s.Far, err = handshake(nil, time.Minute); err != nil {
		return s, err
	}
	if s.Near, err = handshake(second, time.Minute); err != nil {
		return s, err
	}
	n.Cut(Cut{To: "b"}, Cut{From: "b"})
	_, bad := handshake(nil, blocked)
	_, good := handshake(second, time.Minute)
	s.Cut, s.Direct = bad != nil, good == nil
	return s, n.Close()
}

// Enter moves a whole process into a namespace, and Attach makes it a part of a network:
// by one address as all are, by the other as one that looks on.
func TestAttach(t *testing.T) {
	if reason := Missing(); reason != "" {
		t.Skip(reason)
	}
	out, err := child("attached").Output()
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Has, " "); got != "127.0.0.1/8 10.77.0.1/24 10.77.0.2/24" {
		t.Errorf("it has %s", got)
	}
	if far := farAway.Seconds(); s.Far < far || s.Near >= far || !s.Cut || !s.Direct {
		t.Errorf("got %+v", s)
	}
}

// Who shares the machine's network is no host of a network.
func TestAttachOutside(t *testing.T) {
	n := lab(t, "")
	if _, _, err := n.Attach("clients", "observer"); err == nil {
		t.Error("the machine's own network became a part of a network to test on")
	}
}

func TestTooManyHosts(t *testing.T) {
	n := lab(t, "")
	n.mu.Lock()
	for len(n.hosts) < maxHosts {
		n.hosts = append(n.hosts, &Host{})
	}
	n.mu.Unlock()
	if _, err := n.Host("one more"); err == nil {
		t.Error("there are more hosts than addresses")
	}
}
