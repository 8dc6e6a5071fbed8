package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// jobWaits tells for what jobs wait, by id, as far as this coordinator leads.
func (n *node) jobWaits(s *state.State) map[uint64]jobs.Wait {
	d := n.leading.Load()
	if d == nil {
		return nil
	}
	return jobs.Waits(s.Jobs(), n.facts(d))
}

// facts is what this leader knows of what jobs may wait for.
func (n *node) facts(d *dispatch.Dispatcher) *jobs.Facts {
	f := &jobs.Facts{Concurrent: n.cfg.Concurrent, Join: n.join(), Unrecorded: n.unrecorded(), Workers: d.Availability, Lost: n.copies.Unavailable}
	switch {
	case n.conn.Connected():
	case n.nats == nil:
		f.NATS = "the leader is not connected to the NATS server of --nats; start that server again"
	default:
		f.NATS = "the leader is not connected to its NATS server"
	}
	return f
}

// join lists the coordinators' HTTP addresses as the flag --join takes them.
func (n *node) join() string { return protocol.JoinList(n.roster.known()) }

// unrecorded says why this leader can record nothing just now, or nothing.
func (n *node) unrecorded() string {
	if err := n.store.Trouble(); err != nil {
		return err.Error()
	}
	age := n.store.Pending()
	if age < jobs.PendingLong {
		return ""
	}
	text := fmt.Sprintf("a log entry has not reached a quorum of the disks for %v", age.Round(time.Second))
	if full := n.disk.Load(); full != nil {
		text += ", and " + (*full).Error()
	}
	return text
}

// observeWaits sets the gauges of what jobs wait for, and of whether a leader is known.
func (n *node) observeWaits(s *state.State) {
	counts := make(map[protocol.WaitReason]int)
	for _, w := range n.jobWaits(s) {
		counts[w.Reason]++
	}
	for _, r := range protocol.WaitReasons() {
		n.metrics.JobsWaiting.WithLabelValues(string(r)).Set(float64(counts[r]))
	}
	known := 0.0
	if n.heard() {
		known = 1
	}
	n.metrics.LeaderKnown.Set(known)
}

// standing is what /readyz adds to whether this coordinator is ready: who leads, whether
// there are workers, or which coordinators answer.
func (n *node) standing(ctx context.Context, notReady error) string {
	text := n.position(ctx, notReady)
	if slow := n.warning(); slow != "" {
		text += "; " + slow
	}
	return text
}

// position is standing without what the network has to do with it.
func (n *node) position(ctx context.Context, notReady error) string {
	leader, _ := n.store.Leader()
	if leader == "" && n.store.Stats().LastIndex == 0 {
		return "no leader has reached this coordinator"
	}
	if leader == "" {
		return n.withoutLeader(ctx)
	}
	d := n.leading.Load()
	switch {
	case leader != n.cfg.ID:
		return leader + " leads; the /readyz of the leader says whether there are workers"
	case d == nil:
		return "this coordinator is about to lead"
	case notReady != nil:
		return "this coordinator leads"
	}
	return "this coordinator leads; " + workersLine(d.Availability(0), n.join())
}

// workersLine says whether there are workers to use, and how to get one.
func workersLine(a dispatch.Availability, join string) string {
	others := len(a.Unreachable) + len(a.Distrusted) + len(a.Refused)
	switch {
	case a.Usable == 1:
		return "1 worker can be used"
	case a.Usable > 1:
		return fmt.Sprintf("%d workers can be used", a.Usable)
	case a.Unknown:
		return "no worker has reported yet"
	case others > 0:
		return fmt.Sprintf("none of %d workers can be used (coppice cluster tells why); start a worker: %s", others, protocol.StartWorker(join))
	}
	return protocol.NoWorker(join)
}

// askWithin bounds the question to the others who they are, where a probe waits for the
// answer.
const askWithin = 500 * time.Millisecond

// withoutLeader asks the other voters whether they are there, all at once, and says which
// are.
func (n *node) withoutLeader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	voters, _ := n.others()
	silent := make([]string, len(voters))
	var asking sync.WaitGroup
	for i, id := range voters {
		asking.Go(func() {
			a, err := n.peers.ask(ctx, id)
			if err == nil && a.Directory == "" {
				err = fmt.Errorf("%s is starting", id)
			}
			if err == nil && a.Cluster != n.subjects.Cluster {
				err = fmt.Errorf("%s is a member of cluster %s, this cluster is %s", id, cmp.Or(a.Cluster, "none"), n.subjects.Cluster)
			}
			if err == nil && !n.isServer(a.ID, a.Directory) {
				err = fmt.Errorf("%s has a new folder (directory id %s) and no vote yet", id, a.Directory)
			}
			if err != nil {
				silent[i] = strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), fmt.Sprintf("no answer in %v", askWithin))
			}
		})
	}
	asking.Wait()
	return withoutLeader(len(voters)+1, silent)
}

// isServer reports whether a coordinator with this folder is a member.
func (n *node) isServer(id, directory string) bool {
	return slices.ContainsFunc(n.store.Members(), func(m store.Member) bool { return m.ID == id && m.Directory == directory })
}

// withoutLeader says what it means that there is no leader where, of so many voters, these
// do not answer; an answer is empty.
func withoutLeader(voters int, silent []string) string {
	var away []string
	for _, s := range silent {
		if s != "" {
			away = append(away, s)
		}
	}
	answer, need := voters-len(away), voters/2+1
	switch {
	case answer < need:
		return fmt.Sprintf("%d of %d coordinators answer, but %d are needed; start these again: %s", answer, voters, need, strings.Join(away, "; "))
	case len(away) > 0:
		return fmt.Sprintf("%d of %d coordinators answer, and an election is in progress; no answer from: %s", answer, voters, strings.Join(away, "; "))
	case voters == 1:
		return "this coordinator is about to lead"
	}
	return fmt.Sprintf("all %d coordinators answer, and an election is in progress", voters)
}
