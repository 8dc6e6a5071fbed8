package api

import (
	"context"
	"errors"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// What callers with an identity make is private, unless they share it. A private dataset is read by its owner and by admins.
// So are the models, predictions and records of a private job, and what an experiment of such jobs reports. What a cluster
// lists stays visible to all: names, states, settings, measures and digests.
//
// Everybody sees the digests of blobs in lists, so a digest grants nothing. A caller may read a blob, or refer to it, if
// something that the caller may read refers to it, or if the caller has sent its bytes.

// isPrivate reports whether something new is private: its maker has a name, and does not share it.
func isPrivate(ctx context.Context, shared bool) bool { return access.Of(ctx).Name != "" && !shared }

// readDataset returns nil if the caller may train on a dataset.
func readDataset(ctx context.Context, d *protocol.Dataset) error {
	return access.Read(ctx, "dataset", d.Name, d.Ownership)
}

// readJob returns nil if the caller may read what a job leaves behind.
func readJob(ctx context.Context, j *state.Job) error {
	return access.Read(ctx, "job", j.Name, j.Ownership)
}

// readExperiment returns nil if the caller may read the results of all jobs of an experiment.
func readExperiment(ctx context.Context, name string, jobs []*state.Job) error {
	for _, j := range jobs {
		if err := access.Read(ctx, "experiment", name, j.Ownership); err != nil {
			return err
		}
	}
	return nil
}

// maxSent is how many blobs sentBlobs remembers at least, the newest of all callers.
const maxSent = 1 << 18

// sentBlobs has the blobs that callers have sent, with the names of the callers. Only the leader receives blobs. It keeps
// the newest maxSent to twice maxSent of them in memory. A caller sends a forgotten blob again, as to another leader.
type sentBlobs struct {
	mu          sync.Mutex
	now, before map[sentBlob]struct{} // now has at most maxSent elements, and then takes the place of before
}

type sentBlob struct {
	caller string
	digest digests.Digest
}

// add notes that a caller has sent a blob.
func (s *sentBlobs) add(caller, digest string) {
	d, ok := digests.Parse(digest)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || len(s.now) == maxSent {
		s.now, s.before = make(map[sentBlob]struct{}), s.now
	}
	s.now[sentBlob{caller, d}] = struct{}{}
}

// remove removes from a set the blobs that a caller has sent.
func (s *sentBlobs) remove(caller string, from digests.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range from {
		_, now := s.now[sentBlob{caller, d}]
		_, before := s.before[sentBlob{caller, d}]
		if now || before {
			delete(from, d)
		}
	}
}

// errUnread says that a caller may not read a blob. It says the same of a blob that does not exist.
var errUnread = errors.New("there is no such blob that this caller may read")
