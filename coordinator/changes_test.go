package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

// studied submits the experiment "e" of short runs, two methods on one dataset.
func (c *cluster) studied(ctx context.Context, repeats int) protocol.JobInfo {
	c.t.Helper()
	c.put(ctx, "art")
	plan, err := c.client.Experiments().Submit(ctx, protocol.ExperimentRequest{
		Spec: fmt.Sprintf("name: e\ndatasets: [{dataset: art}]\nfolds: {k: 5, repeats: %d}\nmethods: [aa-knn, {algorithm: "+
			"structrf, settings: {trees: 5}}]\n", repeats),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return plan.Jobs[0]
}

// another returns another client of the cluster, which asks all coordinators.
func (c *cluster) another() *client.Client {
	c.t.Helper()
	var servers string
	for _, p := range c.peers {
		servers += fmt.Sprintf("127.0.0.1:%d,", p.Port)
	}
	cl, err := client.New(servers)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	cl.Patience = patience
	return cl
}

// TestChangesOfAnExperiment follows an experiment and its job in two clients, and stops the leader
// twice while they do: no stream holds it up. The clients see the same end and each run, and what
// they see of the job does not go back.
func TestChangesOfAnExperiment(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 2)
	const repeats = 10
	c.pause.Store(int64(50 * time.Millisecond)) // runs last
	job := c.studied(ctx, repeats)
	runs := 2 * 5 * repeats
	var mu sync.Mutex // guards stops
	stops := 0
	disturb := func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if stops == 2 || done < (stops+1)*runs/4 || done > runs*3/4 {
			return
		}
		stops++
		leader := c.leader(ctx)
		c.stop(leader)
		c.startCoordinator(leader)
	}
	var watching sync.WaitGroup
	for range 2 {
		watching.Go(func() {
			seen, lines, ended := make(map[int]protocol.CellState), 0, 0
			x, err := c.another().Experiments().Watch(ctx, "e", true, func(x *protocol.ExperimentLine) {
				lines++
				for _, of := range x.RunsEnded {
					for _, s := range of.Runs {
						if of.Job != job.ID || s.Task >= runs || s.Failed || s.NotRun {
							t.Errorf("run %+v of job %d", s, of.Job)
						}
						seen[s.Task] = s
					}
				}
				if x.State == protocol.Running {
					disturb(x.Done)
				} else if x.Ended() {
					ended++
				}
			})
			if err != nil || x.State != protocol.Done || x.Done != runs || len(seen) != runs || ended == 0 {
				t.Errorf("%+v, %v: %d runs in %d lines", x, err, len(seen), lines)
			}
			states := make(map[int]protocol.CellState)
			err = c.client.Experiments().States(ctx, job.ID, 0, runs, func(s protocol.CellState) error {
				states[s.Task] = s
				return nil
			})
			if err != nil || !maps.Equal(seen, states) {
				t.Errorf("the runs are told otherwise than asked for: %v", err)
			}
		})
		watching.Go(func() {
			done := 0
			j, err := c.another().Jobs().Watch(ctx, "e.art", func(j *protocol.JobInfo) {
				if j.Gathered < done && !j.State.Final() {
					t.Errorf("the job goes back from %d runs to %d", done, j.Gathered)
				}
				done = j.Gathered
			})
			if err != nil || j.State != protocol.Done {
				t.Errorf("%+v, %v", j, err)
			}
		})
	}
	watching.Wait()
	if stops < 2 {
		t.Logf("the leader was stopped %d times: this machine is too fast", stops)
	}
}
