package coordinator

import (
	"cmp"
	"context"
	"maps"
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

// lot is what is kept or deleted together: a job, or all jobs of an experiment.
type lot struct {
	ids   []uint64
	ended uint64 // the greatest index of the entries that ended them
}

// surplus lists the ended jobs beyond so many: those that ended first. An experiment counts as one
// job, which has ended when all of its jobs have.
func surplus(jobs []*state.Job, keep int) (ids []uint64) {
	lots := lotsOf(jobs)
	if len(lots) <= keep {
		return nil
	}
	slices.SortFunc(lots, func(a, b *lot) int { return cmp.Compare(a.ended, b.ended) })
	for _, l := range lots[:len(lots)-keep] {
		ids = append(ids, l.ids...)
	}
	return ids
}

// lotsOf lists what has ended.
func lotsOf(jobs []*state.Job) (list []*lot) {
	experiments, unended := make(map[string]*lot), state.Unended(jobs)
	for _, j := range jobs {
		switch l := experiments[j.Experiment]; {
		case !j.State.Final() || unended[j.Experiment]:
		case j.Experiment == "":
			list = append(list, &lot{[]uint64{j.ID}, j.EndIndex})
		case l == nil:
			experiments[j.Experiment] = &lot{[]uint64{j.ID}, j.EndIndex}
		default:
			l.ids, l.ended = append(l.ids, j.ID), max(l.ended, j.EndIndex)
		}
	}
	return slices.AppendSeq(list, maps.Values(experiments))
}
