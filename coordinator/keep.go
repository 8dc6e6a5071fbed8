package coordinator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// keepJobs deletes, on the leader, the ended jobs beyond those that are kept.
func (n *node) keepJobs(ctx context.Context) {
	if n.cfg.KeepJobs == 0 || n.leading.Load() == nil {
		return
	}
	for ids := range slices.Chunk(surplus(n.store.State().Jobs(), n.cfg.KeepJobs), protocol.MaxDelete) {
		entry := protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: ids, Time: time.Now().Unix()})
		if _, _, err := n.store.Propose(ctx, entry); err != nil {
			n.cfg.Log.Debug("ended jobs could not be deleted", "error", err)
			return
		}
		n.cfg.Log.Info("ended jobs were deleted", "jobs", len(ids), "keep", n.cfg.KeepJobs, "first", ids[0], "last", ids[len(ids)-1])
	}
}

// surplus lists the ended jobs beyond so many: those that ended first.
func surplus(jobs []*state.Job, keep int) (ids []uint64) {
	var ended []*state.Job
	for _, j := range jobs {
		if j.State.Final() {
			ended = append(ended, j)
		}
	}
	if len(ended) <= keep {
		return nil
	}
	slices.SortFunc(ended, func(a, b *state.Job) int { return cmp.Compare(a.EndIndex, b.EndIndex) })
	for _, j := range ended[:len(ended)-keep] {
		ids = append(ids, j.ID)
	}
	return ids
}
