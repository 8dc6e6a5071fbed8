package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
)

// onNetwork has this test binary move onto a network of its own before it runs tests.
const onNetwork = "COPPICE_TEST_ON_NETWORK"

// enterNetwork is the beginning of a test binary that onNetwork names.
func enterNetwork() error {
	if os.Getenv(onNetwork) == "" {
		return nil
	}
	return netlab.Enter()
}

// alone runs a test again in a process that has a network of its own, with more variables,
// and returns what it printed; ok is false in that process, which goes on. Where there can
// be no network, the test is skipped.
func alone(t *testing.T, more ...string) (out string, ok bool) {
	t.Helper()
	if os.Getenv(onNetwork) != "" {
		return "", false
	}
	if reason := netlab.Missing(); reason != "" {
		t.Skip(reason)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(append(os.Environ(), onNetwork+"=1"), more...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return string(b), true
}

// farCluster is a cluster of whose processes each has a host, and this process one.
type farCluster struct {
	*proc.Cluster
	looks *proc.Observer // past all links
}

// startFar starts a cluster on a network. Its processes end with the test.
func startFar(t *testing.T, settings string, coordinators, workers int, args ...string) *farCluster {
	t.Helper()
	var s netlab.Settings
	if settings != "" {
		var err error
		if s, err = netlab.Parse(settings); err != nil {
			t.Fatal(err)
		}
	}
	n, err := netlab.New(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, looks, err := n.Attach("clients", "observer")
	if err != nil {
		t.Fatal(errors.Join(err, n.Close()))
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	c := startWith(t, proc.Config{
		Coordinators: coordinators, Workers: workers, Args: args,
		Hosts: func(name string) (proc.Host, error) { return n.Host(name) },
	})
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(looks.Address())}}
	return &farCluster{c, proc.NewObserver(nil, &http.Transport{DialContext: dialer.DialContext})}
}

// total sums a metric up over the coordinators.
func (c *farCluster) total(t *testing.T, name string) (sum float64) {
	t.Helper()
	for _, v := range c.each(t, name) {
		sum += v
	}
	return sum
}

// each returns a metric of every coordinator.
func (c *farCluster) each(t *testing.T, name string) (values []float64) {
	t.Helper()
	for _, n := range c.Coordinators {
		s, err := c.looks.Scrape(t.Context(), c.HTTP(n))
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, s[name])
	}
	return values
}

// TestNetwork: three coordinators and two workers, each 20 ms from any other there and
// back, train to the digest of this process; and it takes the time that this costs.
func TestNetwork(t *testing.T) {
	if out, done := alone(t); done {
		t.Log(out)
		return
	}
	const rtt, steps = 20 * time.Millisecond, 60
	data := artificialFile(t, t.TempDir(), "set.csv", 1000, 1)
	want := digestOf(t, coppice(t, clusterJob(data, steps, "--local")...))
	c := startFar(t, "rtt="+rtt.String(), 3, 2)
	began := time.Now()
	if got := digestOf(t, coppice(t, clusterJob(data, steps, "--server", c.Servers())...)); got != want || len(got) != 64 {
		t.Errorf("digest %q, in this process %q", got, want)
	}
	if took := time.Since(began); took < steps*rtt {
		t.Errorf("%d steps took %v, though each waits for %v", steps, took, rtt)
	}
	if n := c.total(t, "coppice_tasks_dispatched_total"); n < steps {
		t.Errorf("%v units were given out", n)
	}
}
