package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
// A digest names a blob to whoever reads it in a list, so it grants nothing. A caller may read a blob, or refer to it, if
// something that the caller may read refers to it, or if the caller has sent its bytes.

// isPrivate reports whether something new is private: its maker has a name, and does not share it.
func isPrivate(ctx context.Context, shared bool) bool { return access.Of(ctx).Name != "" && !shared }

// readDataset returns nil if the caller may train on a dataset.
func readDataset(ctx context.Context, d *protocol.Dataset) error {
	return access.Read(ctx, "dataset", d.Name, d.Owner, d.Private)
}

// readJob returns nil if the caller may read what a job leaves behind.
func readJob(ctx context.Context, j *state.Job) error {
	return access.Read(ctx, "job", j.Name, j.Owner, j.Private)
}

// readExperiment returns nil if the caller may read the results of all jobs of an experiment.
func readExperiment(ctx context.Context, name string, jobs []*state.Job) error {
	for _, j := range jobs {
		if err := access.Read(ctx, "experiment", name, j.Owner, j.Private); err != nil {
			return err
		}
	}
	return nil
}

// shareHandlers let all users read what was private.
type shareHandlers struct{ jobView }

func (h *shareHandlers) dataset(r *http.Request) (any, error) {
	d, err := findDataset(h.store.State(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := access.Own(r.Context(), "dataset "+d.Name, d.Owner); err != nil {
		return nil, err
	}
	if _, _, err = commit(r, h.store, protocol.EntryShare, protocol.ShareEntry{Dataset: d.Name, Owner: d.Owner}); err != nil {
		return nil, err
	}
	return findDataset(h.store.State(), d.Name)
}

func (h *shareHandlers) job(r *http.Request) (any, error) {
	j, err := findJob(h.store.State(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	if err := access.Own(r.Context(), j.String(), j.Owner); err != nil {
		return nil, err
	}
	index, _, err := commit(r, h.store, protocol.EntryShare, protocol.ShareEntry{Jobs: []uint64{j.ID}, Owner: j.Owner})
	if err != nil {
		return nil, err
	}
	st := h.store.State()
	if j = st.Job(j.ID); j == nil {
		return nil, fmt.Errorf("%w: the job was deleted meanwhile", state.ErrNotFound)
	}
	return h.info(j, max(index, st.Index())), nil
}

// experiment shares all jobs that an experiment has now. Later jobs of the experiment are then shared, too.
func (h *experimentHandlers) share(r *http.Request) (any, error) {
	name := r.PathValue("name")
	list, err := jobsOf(h.store.State(), name)
	if err != nil {
		return nil, err
	}
	if err := access.Own(r.Context(), "experiment "+name, list[0].Owner); err != nil {
		return nil, err
	}
	ids, names := []uint64(nil), []string{}
	for _, j := range list {
		if j.Private {
			ids, names = append(ids, j.ID), append(names, j.Name)
		}
	}
	for len(ids) > 0 {
		some := ids[:min(len(ids), protocol.MaxDelete)]
		if _, _, err := commit(r, h.store, protocol.EntryShare, protocol.ShareEntry{Jobs: some, Owner: list[0].Owner}); err != nil {
			return nil, err
		}
		ids = ids[len(some):]
	}
	x, err := h.describeOne(name)
	if err != nil {
		return nil, err
	}
	return protocol.ExperimentChange{Experiment: *x, Changed: names}, nil
}

// maxSent is how many of the blobs that callers have sent are known at least, if that many were sent.
const maxSent = 1 << 18

// sentBlobs has the blobs that callers have sent, with the names of the callers. Only the leader receives blobs. It keeps
// the newest maxSent to twice maxSent of them in memory: a caller sends a blob again that is not known, as to another leader.
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

// unread returns those of some blobs that the caller of a request may neither read nor refer to.
func (h *blobHandlers) unread(ctx context.Context, list ...string) digests.Set {
	set := make(digests.Set)
	if access.Reads(ctx, "", true) { // everything
		return set
	}
	for _, digest := range list {
		set.Add(digest)
	}
	h.sent.remove(access.Of(ctx).Name, set)
	h.store.State().Unread(set, func(owner string, private bool) bool { return access.Reads(ctx, owner, private) })
	return set
}

// errUnread says that a caller may not read a blob. It says the same of a blob that does not exist.
var errUnread = errors.New("nothing refers to it that the caller may read")

// get streams a blob. Any coordinator answers if it knows of something that refers to the blob and that the caller may read:
// the bytes of a digest never change. Otherwise the leader answers, which knows everything, and who has sent what.
func (h *blobHandlers) get(toLeader http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(h.unread(r.Context(), r.PathValue("digest"))) > 0 {
			toLeader(w, r)
			return
		}
		h.stream(w, r)
	}
}

// getAsLeader streams a blob that the caller may read.
func (h *blobHandlers) getAsLeader(w http.ResponseWriter, r *http.Request) {
	digest := r.PathValue("digest")
	if len(h.unread(r.Context(), digest)) > 0 {
		h.answer(w, nil, fmt.Errorf("%w: blob %.80s: %w", state.ErrNotFound, digest, errUnread))
		return
	}
	h.stream(w, r)
}
