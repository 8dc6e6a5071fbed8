package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/internal/proc"
	"github.com/coppice-ldl/coppice/protocol"
)

// Step is what a gradient step of LDLF costs on the cluster beyond its own
// computation. Times are in seconds, of the medians.
type Step struct {
	Pair
	Local   float64 `json:"local_step_seconds"`
	Cluster float64 `json:"cluster_step_seconds"`
	// Sent and Received are the bytes that a step takes to the worker and back,
	// and Transfers the time that just these take one way each.
	Sent      float64 `json:"bytes_to_worker"`
	Received  float64 `json:"bytes_to_leader"`
	Transfers Spread  `json:"transfers_seconds"`
	// Overhead is what remains: Cluster less Local less Transfers.
	Overhead float64 `json:"overhead_seconds"`
}

// Step measures steps gradient steps, each a round, without validation and with a
// single short leaf update before them.
func (b *Bench) Step(ctx context.Context, steps, batch int) (*Step, error) {
	_, before, err := b.series(ctx)
	if err != nil {
		return nil, err
	}
	p, err := b.measure(ctx, protocol.Spec{
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
	_, after, err := b.series(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(p.Steps)
	all := n * float64(b.Runs+1)
	s := &Step{
		Pair: *p, Local: p.Local.Median / n, Cluster: p.Cluster.Median / n,
		Sent:     delta(before, after, "coppice_nats_received_bytes_total") / all,
		Received: delta(before, after, "coppice_nats_sent_bytes_total") / all,
	}
	if s.Transfers, err = b.transfers(ctx, int(s.Sent), int(s.Received), time.Duration(s.Local*float64(time.Second))); err != nil {
		return nil, err
	}
	s.Overhead = s.Cluster - s.Local - s.Transfers.Median
	return s, nil
}

func delta(before, after proc.Series, name string) float64 { return after[name] - before[name] }

// raftOf returns the share that commits had in seconds of jobs on the cluster.
func raftOf(before, after proc.Series, seconds float64) Raft {
	return Raft{
		Flight:   delta(before, after, `coppice_phase_seconds_sum{phase="commit"}`) / seconds,
		Wait:     delta(before, after, "coppice_commit_wait_seconds_total") / seconds,
		Proposal: delta(before, after, "coppice_raft_commit_seconds_sum") / max(1, delta(before, after, "coppice_raft_commit_seconds_count")),
	}
}
