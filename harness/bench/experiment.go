package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// The experiment that is measured: each repeat has experimentSets * experimentMethods * experimentFolds runs.
const (
	experimentName    = "many"
	experimentSets    = 4
	experimentMethods = 10
	experimentFolds   = 10
	experimentSamples = 300
)

// RunsOfRepeat is the number of runs of one repeat of the experiment that is measured.
const RunsOfRepeat = experimentSets * experimentMethods * experimentFolds

// Experiment measures commands and servers while an experiment of many short runs runs, and after it.
type Experiment struct {
	Cluster *proc.Cluster
	Exe     string // the coppice executable; each command is a process
	Dir     string // for the spec
	Repeats int
	Times   int // how often each command is measured
	// Note is told what is measured now.
	Note func(format string, args ...any)
}

// ExperimentTimes is what an experiment takes. A tenth of its runs fail. Times of commands include the start of the process.
type ExperimentTimes struct {
	Runs    int `json:"runs"`
	Samples int `json:"samples"` // of each dataset
	// Version is the time of coppice version, which does nothing but start.
	Version speed.Spread `json:"version_seconds"`
	// Submit is the time of coppice experiment run until it says that the runs are submitted, and Again the time of the
	// same command after the end, when there is nothing new, with the report.
	Submit float64      `json:"submit_seconds"`
	Again  speed.Spread `json:"again_seconds"`
	Report speed.Spread `json:"report_seconds"`
	// Leaders is the time in which the leader makes the report, as JSON, and After its greatest resident memory then, in
	// bytes.
	Leaders speed.Spread `json:"report_of_leader_seconds"`
	After   float64      `json:"leader_after_report_bytes"`
	// All is the time from the submission until all runs have ended.
	All     float64            `json:"all_runs_seconds"`
	Moments []ExperimentMoment `json:"moments"`
	// Restart is the time until the cluster answers with the experiment after all coordinators were killed and started.
	Restart float64 `json:"restart_of_all_seconds"`
}

// ExperimentMoment is what was measured when some of the runs had ended.
type ExperimentMoment struct {
	Ended int          `json:"runs_ended"` // when the measurement began
	List  speed.Spread `json:"list_seconds"`
	Show  speed.Spread `json:"show_seconds"`
	// Leader is the greatest resident memory of the leader since the moment before, Follower of the other coordinators
	// and Worker of the workers, in bytes.
	Leader   float64 `json:"leader_bytes"`
	Follower float64 `json:"follower_bytes"`
	Worker   float64 `json:"worker_bytes"`
	// Restart is the time until a coordinator that does not lead is ready after it was killed and started; 0: there is
	// only one coordinator.
	Restart float64 `json:"restart_seconds"`
}

// Measure runs the experiment and measures at a quarter, a half and three quarters of the runs and after the end.
func (x *Experiment) Measure(ctx context.Context) (*ExperimentTimes, error) {
	t := &ExperimentTimes{Runs: RunsOfRepeat * x.Repeats, Samples: experimentSamples}
	spec, err := x.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if t.Version, err = x.timed(ctx, "version"); err != nil {
		return nil, err
	}
	x.Note("submitting %d runs", t.Runs)
	began := time.Now()
	if t.Submit, err = x.submit(ctx, spec); err != nil {
		return nil, err
	}
	for quarter := 1; quarter <= 4; quarter++ {
		m, err := x.wait(ctx, t.Runs*quarter/4, t.Runs)
		if err != nil {
			return nil, err
		}
		if quarter == 4 {
			t.All = time.Since(began).Seconds()
		}
		if err := x.measure(ctx, m); err != nil {
			return nil, err
		}
		t.Moments = append(t.Moments, *m)
	}
	if t.Again, err = x.timed(ctx, "experiment", "run", spec); err != nil {
		return nil, err
	}
	if t.Report, err = x.timed(ctx, "experiment", "report", experimentName); err != nil {
		return nil, err
	}
	if t.Leaders, t.After, err = x.reportOfLeader(ctx); err != nil {
		return nil, err
	}
	x.Note("restarting all coordinators")
	t.Restart, err = x.restartAll(ctx, t.Runs)
	return t, err
}

// prepare imports the datasets and writes the spec.
func (x *Experiment) prepare(ctx context.Context) (spec string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nfolds: {k: %d, repeats: %d}\nmethods:\n", experimentName, experimentFolds, x.Repeats)
	for k := range experimentMethods - 1 {
		fmt.Fprintf(&b, "  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k+1, k+1)
	}
	fmt.Fprintf(&b, "  - {algorithm: aa-knn, name: fails, settings: {k: %d}}\n", experimentSamples) // there are fewer training samples
	b.WriteString("datasets:\n")
	for i := range experimentSets {
		name := fmt.Sprintf("set%d", i+1)
		x.Note("importing %s", name)
		if _, err := x.Cluster.Client().Datasets().Import(ctx, protocol.DatasetPut{Name: name}, generate.Artificial(experimentSamples, uint64(i+1)), importer.Options{}); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  - {dataset: %s}\n", name)
	}
	spec = filepath.Join(x.Dir, "many.yaml")
	return spec, os.WriteFile(spec, []byte(b.String()), 0o600)
}

func (x *Experiment) command(ctx context.Context, args ...string) *exec.Cmd {
	if args[0] != "version" {
		args = append(append(args, "--server", x.Cluster.Servers()), x.Cluster.Certificates().ClientFlags()...)
	}
	return exec.CommandContext(ctx, x.Exe, args...)
}

// timed returns the times of a command, in seconds.
func (x *Experiment) timed(ctx context.Context, args ...string) (none speed.Spread, err error) {
	x.Note("coppice %s", strings.Join(args, " "))
	var times []float64
	for range x.Times {
		cmd := x.command(ctx, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return none, fmt.Errorf("coppice %s: %w: %s", strings.Join(args, " "), err, &stderr)
		}
		times = append(times, time.Since(began).Seconds())
	}
	return speed.SpreadOf(times), nil
}

// reportOfLeader measures reports that the leader makes, and its memory.
func (x *Experiment) reportOfLeader(ctx context.Context) (seconds speed.Spread, memory float64, err error) {
	x.Note("reports of the leader")
	var times []float64
	var m ExperimentMoment
	for range x.Times {
		began := time.Now()
		if _, err := x.Cluster.Client().Experiments().Report(ctx, experimentName, url.Values{"format": {"json"}}); err != nil {
			return seconds, 0, err
		}
		times = append(times, time.Since(began).Seconds())
		if err := x.memory(ctx, &m); err != nil {
			return seconds, 0, err
		}
	}
	return speed.SpreadOf(times), m.Leader, nil
}

// submit returns the seconds until the experiment is submitted. It leaves the experiment to the cluster.
func (x *Experiment) submit(ctx context.Context, spec string) (seconds float64, err error) {
	cmd := x.command(ctx, "experiment", "run", spec)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines, said := bufio.NewScanner(stderr), ""
	for seconds == 0 && lines.Scan() {
		if said += lines.Text() + "\n"; strings.HasSuffix(lines.Text(), " submitted") {
			seconds = time.Since(began).Seconds()
		}
	}
	err = errors.Join(cmd.Process.Kill(), lines.Err())
	cmd.Wait() // it was killed
	if seconds == 0 {
		return 0, fmt.Errorf("coppice experiment run %s: %w: %s", spec, errors.Join(errNotSubmitted, err), said)
	}
	return seconds, err
}

var errNotSubmitted = errors.New("the runs were not submitted")

// lookEvery is the time between two looks at the experiment and at the memory of the servers.
const lookEvery = 500 * time.Millisecond

// wait waits until so many of all runs have ended, and for the last ones until the experiment is done.
func (x *Experiment) wait(ctx context.Context, ended, of int) (*ExperimentMoment, error) {
	m := new(ExperimentMoment)
	for {
		e, err := x.Cluster.Client().Experiments().Show(ctx, experimentName)
		if err != nil {
			return nil, err
		}
		if e.State.Final() && e.State != protocol.Done {
			return nil, fmt.Errorf("the experiment ended as %s: %s", e.State, strings.Join(e.Errors, "; "))
		}
		if err := x.memory(ctx, m); err != nil {
			return nil, err
		}
		if m.Ended = e.Done; e.Done >= ended && (ended < of || e.State == protocol.Done) {
			return m, nil
		}
		x.Note("%d of %d runs have ended", e.Done, of)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// memory raises the memory of a moment to what the servers use now. A server that does not answer is passed over: it may be
// restarting.
func (x *Experiment) memory(ctx context.Context, m *ExperimentMoment) error {
	info, err := x.Cluster.Client().Cluster(ctx)
	if err != nil {
		return err
	}
	look := func(address string, greatest *float64) {
		if s, err := x.Cluster.Observer().Scrape(ctx, address); err == nil {
			*greatest = max(*greatest, s["process_resident_memory_bytes"])
		}
	}
	for _, c := range info.Coordinators {
		of := &m.Follower
		if c.ID == info.Leader {
			of = &m.Leader
		}
		look(c.HTTP, of)
	}
	for _, w := range info.Workers {
		look(w.Metrics, &m.Worker)
	}
	return nil
}

// measure measures the commands and a restart.
func (x *Experiment) measure(ctx context.Context, m *ExperimentMoment) (err error) {
	if m.List, err = x.timed(ctx, "experiment", "list"); err != nil {
		return err
	}
	if m.Show, err = x.timed(ctx, "experiment", "show", experimentName); err != nil {
		return err
	}
	if err := x.memory(ctx, m); err != nil {
		return err
	}
	leader, err := x.Cluster.Leader(ctx)
	if err != nil {
		return err
	}
	for _, n := range x.Cluster.Coordinators {
		if n != leader {
			x.Note("restarting coordinator %s", n.Name)
			m.Restart, err = x.restart(ctx, n)
			return err
		}
	}
	return nil
}

// restart kills and starts a coordinator, and returns the seconds from its start until it is ready: until it has the
// state of the leader and all blobs.
func (x *Experiment) restart(ctx context.Context, n *proc.Node) (seconds float64, err error) {
	if err := n.Kill(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := n.Restart(); err != nil {
		return 0, err
	}
	for {
		address := x.Cluster.HTTP(n)
		status, _, err := x.Cluster.Observer().Get(ctx, address, "/readyz", maxReady)
		switch {
		case err == nil && status == http.StatusOK:
			return time.Since(began).Seconds(), nil
		case ctx.Err() != nil:
			return 0, fmt.Errorf("%s is not ready: %w", address, errors.Join(ctx.Err(), err))
		}
		_ = wait.For(ctx, readyEvery) // the next look tells that ctx is done
	}
}

// readyEvery is the time between two questions whether a coordinator is ready.
const readyEvery = 10 * time.Millisecond

// maxReady bounds the text of /readyz that is read.
const maxReady = 1 << 10

// restartAll kills and starts all coordinators, and returns the seconds until a leader says that all runs have ended.
func (x *Experiment) restartAll(ctx context.Context, runs int) (seconds float64, err error) {
	for _, n := range x.Cluster.Coordinators {
		if err := n.Kill(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	for _, n := range x.Cluster.Coordinators {
		if err := n.Restart(); err != nil {
			return 0, err
		}
	}
	for {
		e, err := x.Cluster.Client().Experiments().Show(ctx, experimentName)
		if err == nil && e.Done == runs {
			return time.Since(began).Seconds(), nil
		}
		if err == nil {
			err = fmt.Errorf("after the restart, %d of %d runs have ended", e.Done, runs)
		}
		if ctx.Err() != nil || err == nil {
			return 0, errors.Join(ctx.Err(), err)
		}
		_ = wait.For(ctx, readyEvery) // the next look tells that ctx is done
	}
}
