package office

import (
	"context"
	"maps"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/protocol"
)

// suspect returns what commits, under an epoch, that a worker answered wrongly.
func (cfg *Config) suspect(epoch uint64) func(context.Context, string, []uint64, string) error {
	return func(ctx context.Context, worker string, jobs []uint64, reason string) error {
		for {
			n := min(len(jobs), protocol.MaxSuspects)
			entry := protocol.SuspectEntry{Epoch: epoch, Worker: worker, Jobs: jobs[:n], Reason: reason, Time: time.Now().Unix()}
			if _, _, err := cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntrySuspect, entry)); err != nil {
				return err
			}
			if jobs = jobs[n:]; len(jobs) == 0 {
				return nil
			}
		}
	}
}

// followTrust tells the dispatcher whenever the log says anew which workers are not
// trusted, until ctx is done. Other entries tell nothing: the dispatcher may have
// found a worker out whose entry is on its way.
func (cfg *Config) followTrust(ctx context.Context, d *dispatch.Dispatcher) {
	var last map[string]string
	for {
		st, changed := cfg.Store.Watch()
		if now := st.Distrusted(); !maps.Equal(now, last) {
			d.SetQuarantined(now)
			last = now
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
