package experiments_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// go test ./harness/experiments -run TestEstimates -v -estimates prints how far estimates of experiments are from the
// truth.
var measureEstimates = flag.Bool("estimates", false,
	"measure estimates of when an experiment ends, which takes two minutes; nothing else may run")

// estimated is an experiment that is run to compare estimates with the truth.
type estimated struct {
	name  string
	sizes []int // samples of its datasets
	rest  string
	begin int // workers at the beginning, with one slot each
	join  int // workers that join when a quarter of the work is done
}

var estimatedExperiments = []estimated{
	{name: "ensembles", sizes: []int{1200}, rest: `
folds: {k: 5, repeats: 4}
methods:
  - {algorithm: ensemble, settings: {members: 'structrf:trees=60:min_samples=5,ldlf:steps=800:patience=800', inner_folds: 4}, name: large ensemble}
  - {algorithm: ensemble, name: small ensemble, settings: {members: 'structrf:trees=20,aa-knn', inner_folds: 4}}
  - aa-knn
  - {algorithm: structrf, settings: {trees: 40}}
  - {algorithm: sa-bfgs, grid: {l2: [0.1, 0.01]}, choose: {inner: 3}}
`, begin: 2, join: 0},
	{name: "mixed-sizes", sizes: []int{200, 600, 2000, 6000, 18000}, rest: `
folds: 6
methods:
  - aa-knn
  - {algorithm: structrf, settings: {trees: 40, min_samples: 5}}
  - {algorithm: sa-bfgs, settings: {l2: 0.01}}
  - {algorithm: ldlf, name: ldlf, settings: {steps: 2000, patience: 2000}}
`, begin: 2, join: 0},
	{name: "late-workers", sizes: []int{1000, 3000}, rest: `
folds: {k: 5, repeats: 4}
methods:
  - {algorithm: structrf, settings: {trees: 60, min_samples: 5}}
  - {algorithm: ldlf, name: ldlf, settings: {steps: 2000, patience: 2000}}
  - aa-knn
`, begin: 1, join: 2},
}

// estimatedShares are the shares of the work at which an estimate is compared with the truth.
var estimatedShares = []float64{0.10, 0.25, 0.50, 0.75}

// TestEstimates: once a tenth of the work is done, the leader's estimate of when an experiment ends is within a factor
// of two of the truth. Estimates from before workers join are only printed, since the workers to come are not known: if
// two join one at a quarter of the work, an estimate at a tenth of it is 0.9/(0.15+0.75/3) = 2.25 times the truth.
func TestEstimates(t *testing.T) {
	if !*measureEstimates {
		t.Skip("it takes two minutes; -estimates has it run")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| experiment | work done | runs ended | estimate | truth | ratio | how it was made |\n| --- | "+
		"--: | --: | --: | --: | --: | --- |\n")
	for i := range estimatedExperiments {
		of := &estimatedExperiments[i]
		t.Run(of.name, func(t *testing.T) { of.measure(t, &table) })
	}
	t.Logf("\n%s", &table)
}

// look is what the leader said of an experiment at some time.
type look struct {
	at time.Time
	*protocol.Experiment
}

// measure runs the experiment and adds lines to the table.
func (of *estimated) measure(t *testing.T, table *strings.Builder) {
	dir := t.TempDir()
	text := "name: " + of.name + "\nmeasures: [kl]\ndatasets:\n"
	for i, rows := range of.sizes {
		name := fmt.Sprintf("d%d.csv", rows)
		cmdtest.ArtificialFile(t, dir, name, rows, uint64(i+1))
		text += "  - " + name + "\n"
	}
	spec := cmdtest.Write(t, dir, of.name+".yaml", text+of.rest)
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 3, Workers: of.begin, WorkerArgs: []string{"--slots", "1"}})
	end := make(chan cmdtest.Ended, 1)
	go func() {
		end <- cmdtest.RunContext(t.Context(), "experiment", "run", spec, "--server", c.Servers(), "--out",
			filepath.Join(dir, "report"))
	}()
	looks, done, joined := of.follow(t, c)
	if e := <-end; e.Code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", e.Code, e.Stderr)
	}
	w := workOf(t, c.Client(), looks[0].Name, done)
	last, shares := looks[len(looks)-1], estimatedShares
	within, made := 0, 0
	for i, l := range looks {
		share, truth := w.until(l.at)/w.all, last.at.Sub(l.at).Seconds()
		if share < estimatedShares[0] || i == len(looks)-1 {
			continue
		}
		ratio := l.SecondsLeft / truth
		if l.SecondsLeft > 0 && !l.at.Before(joined) {
			if made++; ratio >= 0.5 && ratio <= 2 {
				within++
			}
		}
		if len(shares) == 0 || share < shares[0] {
			continue
		}
		shares = shares[1:]
		estimate, shown := "-", "-"
		if l.SecondsLeft > 0 {
			estimate, shown = fmt.Sprintf("%.0f s", l.SecondsLeft), fmt.Sprintf("%.2f", ratio)
			if !l.at.Before(joined) && (ratio < 0.5 || ratio > 2) {
				t.Errorf("with %.0f %% of the work done: %.1f s are left by the estimate %s, and %.1f s by the truth", 100*share,
					l.SecondsLeft, l.EstimatedFrom, truth)
			}
		}
		fmt.Fprintf(table, "| %s | %.0f %% | %d of %d | %s | %.0f s | %s | %s |\n", of.name, 100*share, l.Done, l.Runs,
			estimate, truth, shown, l.EstimatedFrom)
	}
	t.Logf("%s took %.0f s, and its runs were computed for %.0f s; of %d looks, %d were from a tenth of the work on, "+
		"with all workers, and had an estimate, and %d of these were within a factor of two", of.name,
		last.at.Sub(looks[0].at).Seconds(), w.all, len(looks), made, within)
}

// aRun is a run by the number of its job and its task.
type aRun struct {
	job  uint64
	task int
}

// follow looks at the experiment until it has ended, and returns what the leader said, when each run was seen to have
// ended, and when workers joined.
func (of *estimated) follow(t *testing.T, c *proc.Cluster) (looks []look, done map[aRun]time.Time, joined time.Time) {
	done = make(map[aRun]time.Time)
	for ; ; _ = wait.For(t.Context(), 100*time.Millisecond) {
		x, err := c.Client().Experiments().Show(t.Context(), of.name)
		if client.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if n := len(looks); n == 0 || x.Done > looks[n-1].Done {
			eachRun(t, c.Client(), of.name, func(ctx context.Context, cl client.Experiments, j *protocol.JobInfo) error {
				return cl.States(ctx, j.ID, 0, j.CellCount, func(s protocol.CellState) error {
					if r := (aRun{job: j.ID, task: s.Task}); done[r].IsZero() {
						done[r] = now
					}
					return nil
				})
			})
		}
		looks = append(looks, look{at: now, Experiment: x})
		if x.Ended() {
			return looks, done, joined
		}
		// The number of runs stands for the work, because the times are not known yet.
		if joined.IsZero() && of.join > 0 && 4*x.Done >= x.Runs {
			for range of.join {
				if _, err := c.AddWorker(); err != nil {
					t.Fatal(err)
				}
			}
			joined = time.Now()
		}
	}
}

// eachRun calls do with each job of an experiment.
func eachRun(t *testing.T, cl *client.Client, name string, do func(context.Context, client.Experiments,
	*protocol.JobInfo) error) {
	t.Helper()
	list, err := cl.Jobs().List(t.Context(), protocol.JobQuery{Experiment: name})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Jobs {
		if err := do(t.Context(), cl.Experiments(), &list.Jobs[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// work is when the runs of an experiment were computed.
type work struct {
	all        float64 // seconds
	began, end []time.Time
}

// workOf asks how long each run took; done says when it had ended.
func workOf(t *testing.T, cl *client.Client, name string, done map[aRun]time.Time) *work {
	w := new(work)
	eachRun(t, cl, name, func(ctx context.Context, of client.Experiments, j *protocol.JobInfo) error {
		return of.Outcomes(ctx, j.ID, false, func(o protocol.CellOutcome) error {
			end := done[aRun{job: j.ID, task: o.Task}]
			w.all += o.Seconds
			w.began, w.end = append(w.began, end.Add(-time.Duration(o.Seconds*float64(time.Second)))), append(w.end, end)
			return nil
		})
	})
	return w
}

// until returns how many seconds of computing were done until some time.
func (w *work) until(at time.Time) (seconds float64) {
	for i, began := range w.began {
		if end := w.end[i]; at.Before(end) {
			seconds += max(0, at.Sub(began).Seconds())
		} else {
			seconds += end.Sub(began).Seconds()
		}
	}
	return seconds
}
