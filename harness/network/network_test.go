package network_test

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

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
	c := cmdtest.StartWith(t, proc.Config{
		Coordinators: coordinators, Workers: workers, Args: args,
		Hosts: func(name string) (proc.Host, error) { return n.Host(name) },
	})
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(looks.Address())}}
	return &farCluster{Cluster: c, looks: proc.NewObserver(nil, &http.Transport{DialContext: dialer.DialContext})}
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
	testkit.WithoutRace(t)
	if out, done := cmdtest.Alone(t); done {
		t.Log(out)
		return
	}
	const rtt, steps = 20 * time.Millisecond, 60
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 1000, 1)
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, steps, "--local")...))
	c := startFar(t, "rtt="+rtt.String(), 3, 2)
	began := time.Now()
	if got := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, steps, "--server",
		c.Servers())...)); got != want || len(got) != 64 {
		t.Errorf("digest %q, in this process %q", got, want)
	}
	if took := time.Since(began); took < steps*rtt {
		t.Errorf("%d steps took %v, though each waits for %v", steps, took, rtt)
	}
	if n := c.total(t, "coppice_tasks_dispatched_total"); n < steps {
		t.Errorf("%v units were given out", n)
	}
}
