package bench

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/protocol"
)

// Step is what a gradient step of LDLF costs on the cluster beyond its own
// computation. Times are in seconds, of the medians.
type Step struct {
	Pair
	Local   float64 `json:"local_step_seconds"`
	Cluster float64 `json:"cluster_step_seconds"`
	// More is by how much a step on the cluster takes longer, of each run.
	More speed.Spread `json:"more_seconds"`
	// There and Back are the bytes that a step takes to one worker and back, and
	// Transfers the time that just these take one way each, measured after each run.
	There     float64      `json:"bytes_to_worker"`
	Back      float64      `json:"bytes_to_leader"`
	Transfers speed.Spread `json:"transfers_seconds"`
	// Overhead is what remains of each run: its step on the cluster, less the local one
	// and the transfers. Its median is of these differences, not a difference of medians.
	Overhead speed.Spread `json:"overhead_seconds"`
}

// Step measures steps gradient steps, each a round, without validation and with a
// single short leaf update before them.
func (b *Bench) Step(ctx context.Context, steps, batch int) (s *Step, err error) {
	job := stepSpec(b.Dataset, steps, batch)
	if _, _, err := b.there(ctx, job); err != nil { // it brings the worker its shards
		return nil, err
	}
	_, before, err := b.series(ctx)
	if err != nil {
		return nil, err
	}
	s = &Step{}
	var x *exchange
	defer func() {
		if x != nil {
			err = errors.Join(err, x.close(ctx))
		}
	}()
	var more, transfers, overhead []float64
	p, err := b.measure(ctx, job, func(number int, r run) error {
		here, there := r.local/float64(steps), r.cluster/float64(steps)
		if number == 0 {
			_, now, err := b.series(ctx)
			if err != nil {
				return err
			}
			all := float64(b.Turns * steps * len(b.Cluster.Workers))
			s.There = delta(before, now, "coppice_nats_received_bytes_total") / all
			s.Back = delta(before, now, "coppice_nats_sent_bytes_total") / all
			x, err = b.exchange(ctx, int(s.There), int(s.Back), time.Duration(here*float64(time.Second)))
			return err
		}
		seconds, err := x.measure(ctx)
		more, transfers, overhead = append(more, there-here), append(transfers, seconds), append(overhead, there-here-seconds)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Pair = *p
	s.Local, s.Cluster = p.Local.Median/float64(steps), p.Cluster.Median/float64(steps)
	s.More, s.Transfers, s.Overhead = speed.SpreadOf(more), speed.SpreadOf(transfers), speed.SpreadOf(overhead)
	return s, nil
}

func stepSpec(dataset string, steps, batch int) protocol.Spec {
	return protocol.Spec{
		Algorithm: "ldlf", Dataset: dataset,
		Set: map[string]string{
			"steps": strconv.Itoa(steps), "batch_size": strconv.Itoa(batch),
			// One iteration of the leaf update at the beginning, for a gradient.
			"leaf_first": "true", "leaf_iterations": "1", "leaf_batches": strconv.Itoa(steps + 1), "validation_fraction": "0",
		},
	}
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
		Flight:   delta(before, after, `coppice_phase_seconds_sum{phase="commit"}`) / seconds,
		Wait:     delta(before, after, "coppice_commit_wait_seconds_total") / seconds,
		Proposal: delta(before, after, "coppice_raft_commit_seconds_sum") / max(1, delta(before, after, "coppice_raft_commit_seconds_count")),
	}
}
