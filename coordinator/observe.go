package coordinator

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
)

// observe keeps the gauges of Raft, of the state and of the disk.
func (n *node) observe(ctx context.Context) {
	tick := time.NewTicker(n.cfg.timeouts.ObserveGauges)
	defer tick.Stop()
	var seen network
	for {
		n.observeNetwork(&seen)
		n.observeRaft()
		n.observeState(n.store.State())
		n.observeDisk()
		n.copies.observe()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) observeRaft() {
	st, m := n.store.Stats(), n.metrics
	m.SetRaftState(strings.ToLower(st.Role))
	m.RaftTerm.Set(float64(st.Term))
	m.RaftLastContact.Set(max(0, st.LastContact.Seconds()))
	m.RaftApplied.Set(float64(st.AppliedIndex))
	voters := 0
	for _, one := range n.store.Members() {
		if one.Voter {
			voters++
		}
	}
	m.RaftVoters.Set(float64(voters))
}

func (n *node) observeState(s *state.State) {
	n.metrics.Epoch.Set(float64(s.Epoch()))
	n.observeWaits(s)
	n.metrics.Distrusted.Set(float64(len(s.Distrusted())))
	shards := make(map[string]bool)
	for _, d := range s.Datasets() {
		for _, ref := range d.Manifest.Shards {
			shards[ref.Digest] = true
		}
	}
	n.metrics.Shards.Set(float64(len(shards)))
}

func (n *node) observeDisk() {
	if count, bytes, err := n.blobs.Folder.Usage(); err == nil {
		n.metrics.Blobs.Set(float64(count))
		n.metrics.BlobBytes.Set(float64(bytes))
	}
	if free, size, err := blobs.Space(n.cfg.Dir); err == nil {
		n.metrics.DiskFree.Set(float64(free))
		n.metrics.DiskSize.Set(float64(size))
	}
	if bytes, err := folderBytes(n.store.LogDir()); err == nil {
		n.metrics.RaftLogBytes.Set(float64(bytes))
	}
}

// folderBytes sums the sizes of the files in a folder. What disappears meanwhile does
// not count.
func folderBytes(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, err
}
