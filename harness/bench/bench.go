// Package bench measures what a cluster costs over training in one process, on a
// real cluster of processes on this machine.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// Bench compares jobs on a cluster with the same jobs in this process.
type Bench struct {
	Cluster *proc.Cluster
	Data    *local.Data
	Dataset string // name of the same data in the cluster
	Runs    int    // how many figures each side has
	Turns   int    // jobs of each side, in turns, that a figure is the mean of
	// Note, where set, is told what runs now.
	Note func(format string, args ...any)
}

// Pair is one job measured on both sides, in turns.
type Pair struct {
	Local   speed.Spread `json:"local_seconds"`
	Cluster speed.Spread `json:"cluster_seconds"` // from submission until the result is there
	// Ratio is that of each run's two figures.
	Ratio speed.Spread `json:"ratio"`
	// Computed is the mean of the seconds for which the workers together computed tasks.
	Computed float64 `json:"computed_seconds"`
	// Sent and Received are the mean bytes that a job takes to the workers and back.
	Sent     float64 `json:"job_bytes_to_workers"`
	Received float64 `json:"job_bytes_to_leader"`
	Digest   string  `json:"model_digest"` // of the first job, on both sides

	Steps uint64 `json:"steps"`
	Raft  Raft   `json:"raft"`
	// Leader and Workers, all of them together, are what a job costs their processes; Phases is
	// where the time of its reduce rounds goes on the leader, beside waiting.
	Leader  Costs  `json:"leader"`
	Workers Costs  `json:"workers"`
	Phases  Phases `json:"leader_phases"`
}

// Costs are what a job costs a process, or several.
type Costs struct {
	Processor   float64 `json:"processor_seconds"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"allocated_bytes"`
}

// costsOf returns the costs of so many jobs between two looks at a process's metrics, of each.
func costsOf(before, after proc.Series, jobs float64) Costs {
	return Costs{
		Processor:   delta(before, after, "process_cpu_seconds_total") / jobs,
		Allocations: delta(before, after, "go_memstats_mallocs_total") / jobs,
		Bytes:       delta(before, after, "go_memstats_alloc_bytes_total") / jobs,
	}
}

// Phases are the seconds of a job for which the leader's driver did not wait for workers.
type Phases struct {
	Between   float64 `json:"between_seconds"`   // between two rounds
	Broadcast float64 `json:"broadcast_seconds"` // encoding and sending values and tasks
	Reduce    float64 `json:"reduce_seconds"`    // adding up parts
}

func phasesOf(before, after proc.Series, jobs float64) Phases {
	phase := func(name string) float64 {
		return delta(before, after, `coppice_phase_seconds_sum{phase="`+name+`"}`) / jobs
	}
	return Phases{Between: phase("between"), Broadcast: phase("broadcast"), Reduce: phase("reduce")}
}

// Raft is what commits cost while the jobs ran on the cluster.
type Raft struct {
	// Flight is the share of the time during which a commit was under way, beside
	// the rounds; Wait that during which the driver stood still for one.
	Flight float64 `json:"in_flight_share"`
	Wait   float64 `json:"waiting_share"`
	// Proposal is the mean time in seconds from proposing an entry until it was
	// applied.
	Proposal float64 `json:"proposal_seconds"`
}

// Step is what a gradient step of LDLF costs on the cluster beyond its own computation. Times
// are in seconds, of the medians.
type Step struct {
	Pair
	Local   float64 `json:"local_step_seconds"`
	Cluster float64 `json:"cluster_step_seconds"`
	// More is by how much a step on the cluster takes longer, of each run.
	More speed.Spread `json:"more_seconds"`
}

// Forest measures StructRF with preset paper and so many trees: workers of one slot
// against one lane here.
func (b *Bench) Forest(ctx context.Context, trees int) (*Pair, error) {
	p, _, err := b.measure(ctx, protocol.Spec{
		Algorithm: "structrf", Dataset: b.Dataset, Set: map[string]string{"preset": "paper", "trees": strconv.Itoa(trees)},
	})
	return p, err
}

// Step measures steps gradient steps, each a round, without validation and with a
// single short leaf update before them.
func (b *Bench) Step(ctx context.Context, steps, batch int) (*Step, error) {
	p, runs, err := b.measure(ctx, protocol.Spec{
		Algorithm: "ldlf", Dataset: b.Dataset,
		Set: map[string]string{
			"steps": strconv.Itoa(steps), "batch_size": strconv.Itoa(batch),
			// One iteration of the leaf update at the beginning, for a gradient.
			"leaf_first": "true", "leaf_iterations": "1", "leaf_batches": strconv.Itoa(steps + 1), "validation_fraction": "0",
		},
	})
	if err != nil {
		return nil, err
	}
	of := float64(steps)
	more := over(runs, func(r run) float64 { return (r.cluster - r.local) / of })
	return &Step{Pair: *p, Local: p.Local.Median / of, Cluster: p.Cluster.Median / of, More: more}, nil
}

// run is what one run took, in seconds of a job.
type run struct{ local, cluster float64 }

// measure runs a job on both sides Runs times, after one run that does not count.
func (b *Bench) measure(ctx context.Context, s protocol.Spec) (p *Pair, runs []run, err error) {
	p = &Pair{}
	var leader, workers proc.Series
	for number := range b.Runs + 1 {
		b.Note("%s: run %d of %d", s.Algorithm, number, b.Runs)
		r, err := b.run(ctx, s, number, p)
		if err != nil {
			return nil, nil, err
		}
		if number > 0 {
			runs = append(runs, r)
		} else if leader, workers, err = b.series(ctx); err != nil {
			return nil, nil, err
		}
	}
	leaderNow, workersNow, err := b.series(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.Local = over(runs, func(r run) float64 { return r.local })
	p.Cluster = over(runs, func(r run) float64 { return r.cluster })
	p.Ratio = over(runs, func(r run) float64 { return r.cluster / r.local })
	jobs, seconds := float64(b.Runs*b.Turns), 0.0
	for _, r := range runs {
		seconds += r.cluster * float64(b.Turns)
	}
	p.Computed = computedIn(workers, workersNow) / jobs
	p.Sent, p.Received = delta(workers, workersNow, "coppice_nats_received_bytes_total")/jobs, delta(workers, workersNow,
		"coppice_nats_sent_bytes_total")/jobs
	p.Raft = raftOf(leader, leaderNow, seconds)
	p.Leader, p.Workers, p.Phases = costsOf(leader, leaderNow, jobs), costsOf(workers, workersNow, jobs),
		phasesOf(leader, leaderNow, jobs)
	return p, runs, nil
}

// over returns the spread of a figure of runs.
func over(runs []run, figure func(run) float64) speed.Spread {
	var figures []float64
	for _, r := range runs {
		figures = append(figures, figure(r))
	}
	return speed.SpreadOf(figures)
}

// run runs the job Turns times on each side, in turns, so that both see what else
// the machine does. Each turn has a seed of its own: of a job that ran before, the
// coordinators have all trees.
func (b *Bench) run(ctx context.Context, s protocol.Spec, number int, p *Pair) (r run, err error) {
	for turn := range b.Turns {
		seed := uint64(spec.DefaultSeed + number*b.Turns + turn)
		s.Seed = &seed
		here, digest, err := b.here(ctx, s, p)
		if err != nil {
			return r, err
		}
		there, other, err := b.there(ctx, s)
		if err != nil {
			return r, err
		}
		if digest != other {
			return r, fmt.Errorf("the models differ: digest %s in one process, %s on the cluster", digest, other)
		}
		p.Digest = cmp.Or(p.Digest, digest)
		r.local += here / float64(b.Turns)
		r.cluster += there / float64(b.Turns)
	}
	return r, nil
}

// here runs the job in this process, one task at a time as a worker of one slot does,
// and returns the seconds that it took and the model's digest.
func (b *Bench) here(ctx context.Context, s protocol.Spec, p *Pair) (seconds float64, digest string, err error) {
	job, err := spec.Resolve(s, b.Data.Manifest)
	if err != nil {
		return 0, "", err
	}
	began := time.Now()
	o, err := local.Run(ctx, job, b.Data, local.Options{Lanes: 1})
	if err != nil {
		return 0, "", err
	}
	p.Steps = o.Steps
	return time.Since(began).Seconds(), o.ModelDigest, nil
}

// there runs the job on the cluster.
func (b *Bench) there(ctx context.Context, s protocol.Spec) (seconds float64, digest string, err error) {
	began := time.Now()
	j, err := b.Cluster.Client().Jobs().Submit(ctx, s)
	if err != nil {
		return 0, "", err
	}
	if j, err = b.Cluster.Client().Jobs().Watch(ctx, fmt.Sprint(j.ID), func(*protocol.JobInfo) {}); err != nil {
		return 0, "", err
	}
	seconds = time.Since(began).Seconds()
	if j.State != protocol.Done {
		return 0, "", fmt.Errorf("the job ended as %s: %s", j.State, j.Error)
	}
	return seconds, j.Models[0].Digest, nil
}

// series reads the metrics of the leader and, summed, of the workers.
func (b *Bench) series(ctx context.Context) (leader, workers proc.Series, err error) {
	info, err := b.Cluster.Client().Cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(info.Coordinators, func(m protocol.MemberEntry) bool { return m.ID == info.Leader })
	if i < 0 {
		return nil, nil, client.ErrUnavailable
	}
	if leader, err = b.Cluster.Observer().Scrape(ctx, info.Coordinators[i].HTTP); err != nil {
		return nil, nil, err
	}
	workers = make(proc.Series)
	for _, w := range info.Workers {
		one, err := b.Cluster.Observer().Scrape(ctx, w.Metrics)
		if err != nil {
			return nil, nil, err
		}
		for name, value := range one {
			workers[name] += value
		}
	}
	return leader, workers, nil
}

func delta(before, after proc.Series, name string) float64 { return after[name] - before[name] }

// computedIn returns the seconds of tasks that a worker computed, of all kinds.
func computedIn(before, after proc.Series) (seconds float64) {
	for name := range after {
		if strings.HasPrefix(name, "coppice_worker_task_seconds_sum{") {
			seconds += delta(before, after, name)
		}
	}
	return seconds
}

// raftOf returns the share that commits had in seconds of jobs on the cluster.
func raftOf(before, after proc.Series, seconds float64) Raft {
	return Raft{
		Flight: delta(before, after, `coppice_phase_seconds_sum{phase="commit"}`) / seconds,
		Wait:   delta(before, after, "coppice_commit_wait_seconds_total") / seconds,
		Proposal: delta(before, after, "coppice_raft_commit_seconds_sum") /
			max(1, delta(before, after, "coppice_raft_commit_seconds_count")),
	}
}
