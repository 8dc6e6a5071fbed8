package coordinator_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// counter reads a counter of the leader.
func (c *cluster) counter(name string) float64 {
	c.t.Helper()
	leader := c.leader(c.t.Context())
	for _, p := range c.peers {
		if p.ID != leader {
			continue
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.Port))
		if err != nil {
			c.t.Fatal(err)
		}
		defer r.Body.Close()
		page, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(page); m != nil {
			v, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				c.t.Fatal(err)
			}
			return v
		}
	}
	c.t.Fatalf("no counter %s", name)
	return 0
}

// TestTreesAreGrownOnce grows a forest on one worker, then on three of which one
// goes away meanwhile: the digest is that of --local, and no finished tree is
// grown again.
func TestTreesAreGrownOnce(t *testing.T) {
	ctx := deadline(t)
	const trees = 60
	s := protocol.Spec{
		Algorithm: "structrf", Dataset: "art", TestFraction: 0.1,
		Set: map[string]string{"trees": fmt.Sprint(trees), "min_samples": "2"},
	}
	want := localDigest(t, s)
	c := start(t, 1, 1)
	d, err := c.client.Import(ctx, "art", dataset.Artificial(600, 1), dataset.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := c.counter("coppice_nats_sent_bytes_total")
	model := c.train(ctx, s, nil).Models[0]
	if model.Digest != want {
		t.Errorf("one worker: digest %s, --local has %s", model.Digest, want)
	}
	// The trees came from the worker, and none goes back to be evaluated there.
	if sent := c.counter("coppice_nats_sent_bytes_total") - before; model.Bytes < 1<<20 || sent > float64(model.Bytes)/4 {
		t.Errorf("the leader sent %v bytes for a model of %d", sent, model.Bytes)
	}
	// Beside the trees there are two rounds over all shards, means and measures, and a unit
	// for the predictions.
	once := float64(trees + 2*len(d.Manifest.Shards) + 1)
	if got := c.counter("coppice_tasks_dispatched_total"); got != once {
		t.Errorf("%v units were dispatched, want %v", got, once)
	}
	c.startWorker("w1")
	c.startWorker("w2")
	c.watchTrees(s, trees/4, func() { c.stop("w1") }, want)
	again, retried := c.counter("coppice_tasks_dispatched_total")-once, c.counter("coppice_tasks_retried_total")
	if again > once+retried+2 {
		t.Errorf("%v units were dispatched for a forest of %v, and %v retried: finished trees were grown again", again, once, retried)
	}
}

// watchTrees trains again under another name and calls meanwhile once some trees
// are recorded.
func (c *cluster) watchTrees(s protocol.Spec, some int, meanwhile func(), want string) {
	c.t.Helper()
	ctx := deadline(c.t)
	s.Name = "again"
	if _, err := c.client.Submit(ctx, s); err != nil {
		c.t.Fatal(err)
	}
	called := false
	end, err := c.client.Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Collected >= some && !called {
			called = true
			meanwhile()
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if end.State != protocol.Done || end.Models[0].Digest != want {
		c.t.Errorf("%s %s: models %v, --local has %s", end.State, end.Error, end.Models, want)
	}
	if !strings.Contains(string(end.Outcome), "gain_evaluations") {
		c.t.Error("the outcome does not tell of gain_evaluations")
	}
}
