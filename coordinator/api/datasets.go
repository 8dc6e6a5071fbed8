package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// datasetHandlers answer requests about datasets.
type datasetHandlers struct {
	store *store.Store
	blobs *blobHandlers
}

// checkName refuses a name that the log must not have; what says of what it is the name.
func checkName(what, name string) error {
	if err := protocol.CheckName(name); err != nil {
		return fmt.Errorf("%w: the %s's name %.120q: %w", errBad, what, name, err)
	}
	return nil
}

// list lists datasets by name.
func (h *datasetHandlers) list(r *http.Request) (any, error) {
	var q protocol.DatasetQuery
	if err := readList(r, "a list of datasets", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	return partOf(r, h.store.State().Datasets(), &q.ListQuery, "name", func(d **protocol.Dataset) protocol.Element {
		return protocol.Element{Name: (*d).Name, Chosen: q.Has((*d).Name, (*d).Owner, (*d).Time),
			Keys: map[string]any{"name": (*d).Name, "time": float64((*d).Time), "samples": float64((*d).Manifest.Rows)}}
	})
}

func (h *datasetHandlers) get(r *http.Request) (any, error) {
	return findDataset(h.store.State(), r.PathValue("name"))
}

func findDataset(st *state.State, name string) (*protocol.Dataset, error) {
	d := st.Dataset(name)
	if d == nil {
		return nil, fmt.Errorf("%w: there is no dataset %q", state.ErrNotFound, name)
	}
	return d, nil
}

// readManifest reads the name and the manifest of an import, and refuses manifests that
// no import makes.
func readManifest(r *http.Request) (e protocol.DatasetPut, err error) {
	if err := body(r, &e); err != nil {
		return e, err
	}
	if err := checkName("dataset", e.Name); err != nil {
		return e, err
	}
	if e.Manifest == nil || e.Manifest.Labels < 1 {
		return e, fmt.Errorf("%w: the manifest describes a dataset without labels", errBad)
	}
	if err := e.Manifest.Check(); err != nil {
		return e, bad{err}
	}
	return e, nil
}

// check says, before the client sends a blob, why an import would be refused: for its
// name, its manifest or the quota. It answers with the blobs to send: this leader lacks
// them, finds them damaged, or does not let the caller refer to them. put then has a quorum keep all blobs.
func (h *datasetHandlers) check(r *http.Request) (any, error) {
	e, err := readManifest(r)
	if err != nil {
		return nil, err
	}
	if d := h.store.State().Dataset(e.Name); d != nil && d.Digest != e.Manifest.Digest() {
		return nil, fmt.Errorf("dataset %q %w with other content (digest %.12s, not %.12s): choose another name or delete "+
			"the dataset first",
			e.Name, state.ErrExists, d.Digest, e.Manifest.Digest())
	}
	if err := h.nameIsFree(r.Context(), e.Name); err != nil {
		return nil, err
	}
	answer := protocol.DatasetCheck{Lacking: []string{}}
	unread := h.blobs.unread(r.Context(), manifestBlobs(e.Manifest)...)
	var bytes int64
	for _, shard := range e.Manifest.Shards {
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		switch {
		case !h.blobs.blobs.Has(shard.Digest):
			answer.Lacking, bytes = append(answer.Lacking, shard.Digest), bytes+shard.Bytes
		case unread.Has(shard.Digest):
			answer.Lacking = append(answer.Lacking, shard.Digest)
		}
	}
	if g := e.Manifest.Groups; g != nil && (unread.Has(g.Digest) || !h.blobs.blobs.Has(g.Digest)) {
		answer.Lacking = append(answer.Lacking, g.Digest)
	}
	if bytes == 0 {
		return answer, nil
	}
	return answer, h.blobs.quota.fits(bytes)
}

// manifestBlobs lists the digests of the blobs of a dataset.
func manifestBlobs(m *dataset.Manifest) []string {
	return state.DatasetBlobs(&protocol.Dataset{Manifest: m})
}

// nameIsFree refuses the name of a dataset that the caller may not read.
func (h *datasetHandlers) nameIsFree(ctx context.Context, name string) error {
	if d := h.store.State().Dataset(name); d != nil && !access.Reads(ctx, d.Ownership) {
		return fmt.Errorf("dataset %q %w and is private: it belongs to %s; choose another name", name,
			state.ErrExists, d.Owner)
	}
	return nil
}

// parallelShards is how many shards of an import are replicated at once.
const parallelShards = 8

// put commits a dataset once a quorum has all of its blobs: the log never refers to a
// blob that may be lost. Shards that were not sent are found before the first one is
// replicated, so that the error is quick.
func (h *datasetHandlers) put(r *http.Request) (any, error) {
	e, err := readManifest(r)
	if err != nil {
		return nil, err
	}
	if err := h.nameIsFree(r.Context(), e.Name); err != nil {
		return nil, err
	}
	m := e.Manifest
	unread := h.blobs.unread(r.Context(), manifestBlobs(m)...)
	for i, shard := range m.Shards {
		if err := h.blobs.present(r.Context(), shard.Digest, unread); err != nil {
			return nil, notSent(fmt.Sprintf("shard %d", i), shard.Digest, err)
		}
	}
	if m.Groups != nil {
		if err := h.needGroups(r.Context(), m.Groups, m.Divided().Rows, unread); err != nil {
			return nil, err
		}
	}
	g, ctx := errgroup.WithContext(r.Context())
	g.SetLimit(parallelShards)
	for _, shard := range m.Shards {
		g.Go(func() error { return h.blobs.replicate(ctx, shard.Digest) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	_, put, err := commit(r, h.store, protocol.EntryDatasetPut, protocol.DatasetPutEntry{
		Name: e.Name, Manifest: m, Owner: access.Of(r.Context()).Name, Private: isPrivate(r.Context(), e.Shared),
		Time: time.Now().Unix(),
	})
	if err == nil { // another caller may have put an equal dataset meanwhile
		err = h.nameIsFree(r.Context(), e.Name)
	}
	if err != nil {
		return nil, err
	}
	return put, nil
}

// needGroups returns once a quorum has a list of groups. It refuses a list that was not
// sent, or that does not have a group for each of so many samples. unread has the blobs to which the caller may not
// refer.
func (h *datasetHandlers) needGroups(ctx context.Context, g *dataset.Groups, samples int, unread digests.Set) error {
	const what = "the list of groups"
	if err := h.blobs.present(ctx, g.Digest, unread); err != nil {
		return notSent(what, g.Digest, err)
	}
	folder := h.blobs.blobs.Folder
	size, err := folder.Size(g.Digest)
	if err != nil {
		return err
	}
	if size != 2*int64(samples) {
		return fmt.Errorf("%w: %s has %d bytes, want 2 bytes for each of %d samples", errBad, what, size, samples)
	}
	b, err := folder.Get(g.Digest)
	if err != nil {
		return err
	}
	if err := g.Check(b, samples); err != nil {
		return fmt.Errorf("%w: %s: %w", errBad, what, err)
	}
	return h.blobs.replicate(ctx, g.Digest)
}

// own returns the dataset of a request, which its caller may change.
func (h *datasetHandlers) own(r *http.Request) (*protocol.Dataset, error) {
	d, err := findDataset(h.store.State(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return d, access.Own(r.Context(), "dataset "+d.Name, d.Owner)
}

func (h *datasetHandlers) delete(r *http.Request) (any, error) {
	d, err := h.own(r)
	if err != nil {
		return nil, err
	}
	_, _, err = commit(r, h.store, protocol.EntryDatasetDelete, protocol.DatasetDeleteEntry{Name: d.Name, Owner: d.Owner})
	return nil, err
}

// share lets all users read a dataset.
func (h *datasetHandlers) share(r *http.Request) (any, error) {
	d, err := h.own(r)
	if err != nil {
		return nil, err
	}
	if _, _, err = commit(r, h.store, protocol.EntryShare, protocol.ShareEntry{Dataset: d.Name,
		Owner: d.Owner}); err != nil {
		return nil, err
	}
	return findDataset(h.store.State(), d.Name)
}

const (
	maxBlob = 256 << 20 // bytes of one blob
	// minFreeShare is the fraction of the disk that must be free for uploads. Commits may
	// use the rest.
	minFreeShare = 0.05
	// uploadBuffer is how many bytes of an upload are in memory, and uploadCheck after
	// how many bytes the disk and the quota are checked again.
	uploadBuffer = 64 << 10
	uploadCheck  = 4 << 20
)

// blobHandlers answer requests about blobs. They also check, for the handlers of datasets
// and jobs, that the cluster has the blobs that a request refers to.
type blobHandlers struct {
	responder
	store *store.Store
	blobs *replica.Blobs
	quota *blobQuota
	sent  sentBlobs
}

func newBlobHandlers(cfg *Config, respond responder) *blobHandlers {
	usage := func() (int64, error) {
		_, bytes, err := cfg.Blobs.Folder.Usage()
		return bytes, err
	}
	return &blobHandlers{responder: respond, store: cfg.Store, blobs: cfg.Blobs,
		quota: &blobQuota{limit: cfg.Quotas.BlobBytes, usage: usage}}
}

// unread returns the blobs of a list that the caller of a request may neither read nor refer to.
func (h *blobHandlers) unread(ctx context.Context, list ...string) digests.Set {
	set := make(digests.Set)
	if access.Reads(ctx, protocol.Ownership{Private: true}) { // everything
		return set
	}
	for _, digest := range list {
		set.Add(digest)
	}
	h.sent.remove(access.Of(ctx).Name, set)
	samples := access.Of(ctx).Role != rights.Read // the role read reads no samples
	h.store.State().RemoveReadable(set, samples, func(of protocol.Ownership) bool { return access.Reads(ctx, of) })
	return set
}

// get streams a blob. A coordinator answers if a dataset or a job that it knows refers to the blob, and the caller may
// read that. The bytes of a digest never change. If not, the leader answers: it has the newest state, and the list of
// sent blobs.
func (h *blobHandlers) get(toLeader http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if digest := r.PathValue("digest"); !blobs.Valid(digest) { // no coordinator has it, and to ask all of them takes long
			h.answer(w, nil, fmt.Errorf("%w: %w: %.80q", errBad, blobs.ErrDigest, digest))
			return
		}
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

// stream answers with a blob that the caller may read.
func (h *blobHandlers) stream(w http.ResponseWriter, r *http.Request) {
	blob, err := h.blobs.Open(r.Context(), r.PathValue("digest"))
	if err != nil && !errors.Is(err, bus.ErrOffline) {
		err = fmt.Errorf("%w: %w", state.ErrNotFound, err)
	}
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	defer blob.Close()
	content(w, r, r.PathValue("digest"), io.NewSectionReader(blob, 0, blob.Size()))
}

// put stores a blob that a client sends, and returns once a quorum has it. It refuses
// what cannot be stored before the first byte comes. It checks again while the bytes
// come, since several uploads may share the last of the room.
func (h *blobHandlers) put(r *http.Request) (any, error) {
	digest, size, folder := r.PathValue("digest"), r.ContentLength, h.blobs.Folder // size is -1 if it was not sent
	if !blobs.Valid(digest) {
		return nil, fmt.Errorf("%w: %w: %.80q", errBad, blobs.ErrDigest, digest)
	}
	if size > maxBlob {
		return nil, fmt.Errorf("%w: blob %.80q has %d bytes, want at most %d", errBad, digest, size, maxBlob)
	}
	u := &upload{folder: folder}
	if !folder.Has(digest) {
		u.quota = h.quota
	}
	if err := u.diskFull(); err != nil {
		return nil, err
	}
	if u.quota != nil && size >= 0 {
		if err := u.quota.fits(size); err != nil {
			return nil, err
		}
	}
	var err error
	if u.file, err = folder.Writer(); err != nil {
		return nil, err
	}
	defer func() { // it deletes the file unless that became a blob
		if err := u.file.Close(); err != nil {
			h.log.Warn("the file of an unfinished upload could not be deleted", "error", err)
		}
		stored := folder.Has(digest) // also if too few coordinators have it
		for _, done := range u.held {
			done(stored)
		}
	}()
	// The wrapper hides other methods of the body, so that Write gets at most
	// uploadBuffer bytes.
	if _, err := io.CopyBuffer(u, struct{ io.Reader }{r.Body}, make([]byte, uploadBuffer)); err != nil {
		if errors.Is(err, errFull) || errors.Is(err, errBlobQuota) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: blob %.80q: %w", errBad, digest, err)
	}
	err = h.blobs.Receive(r.Context(), digest, u.file)
	if errors.Is(err, blobs.ErrCorrupt) {
		return nil, bad{err}
	}
	if err == nil {
		h.sent.add(access.Of(r.Context()).Name, digest)
	}
	return nil, err
}

// present returns nil if this coordinator has a blob that a client sent before, perhaps
// to another leader. A missing blob is fetched from another coordinator. The error wraps
// blobs.ErrMissing or blobs.ErrDigest if no coordinator was sent the blob, or if unread has it:
// the caller may not refer to it. It is another error while a coordinator that may have it does
// not answer.
func (h *blobHandlers) present(ctx context.Context, digest string, unread digests.Set) error {
	if unread.Has(digest) {
		return fmt.Errorf("%w: %w", blobs.ErrMissing, errUnread)
	}
	if _, err := h.blobs.Folder.Path(digest); err != nil || h.blobs.Folder.Has(digest) {
		return err
	}
	return h.blobs.Fetch(ctx, digest)
}

// notSent names the blob in an error of present, and says if the request is at fault.
func notSent(what, digest string, err error) error {
	if errors.Is(err, blobs.ErrDigest) {
		return fmt.Errorf("%w: %s: %w: %.80q", errBad, what, blobs.ErrDigest, digest)
	}
	if errors.Is(err, blobs.ErrMissing) {
		return fmt.Errorf("%s (blob %.80s) is not on the cluster, or the caller has not sent it: %w", what, digest,
			errNotSent)
	}
	return fmt.Errorf("%s (blob %s): %w", what, digest, err)
}

// replicate returns once a quorum has a blob that is present, so that the log may refer
// to it. The copy here is not enough: an upload that found no quorum leaves one.
func (h *blobHandlers) replicate(ctx context.Context, digest string) error {
	size, err := h.blobs.Folder.Size(digest)
	if err != nil {
		return err
	}
	return h.blobs.Spread(ctx, digest, uint64(size))
}

// need returns once a quorum has a blob to which the caller may refer, since it was sent before. Errors call it what.
func (h *blobHandlers) need(ctx context.Context, what, digest string) error {
	if err := h.present(ctx, digest, h.unread(ctx, digest)); err != nil {
		return notSent(what, digest, err)
	}
	return h.replicate(ctx, digest)
}

// keep stores a blob that the leader made for a request, and returns once a quorum has it. The caller has then sent it.
func (h *blobHandlers) keep(ctx context.Context, b []byte) error {
	digest := blobs.Sum(b)
	if h.blobs.Has(digest) {
		h.sent.add(access.Of(ctx).Name, digest)
		return h.replicate(ctx, digest)
	}
	if err := (&upload{folder: h.blobs.Folder}).diskFull(); err != nil {
		return err
	}
	done, err := h.quota.reserve(int64(len(b)))
	if err != nil {
		return err
	}
	_, err = h.blobs.Put(ctx, b)
	done(err == nil)
	if err == nil {
		h.sent.add(access.Of(ctx).Name, digest)
	}
	return err
}

// upload writes the blob that a client sends to a file without a name, until the blob is
// complete.
type upload struct {
	folder *blobs.Folder
	quota  *blobQuota // nil if the blob is here already
	file   *blobs.Writer
	held   []func(stored bool) // end the reservations of the quota
	room   int64               // bytes that may still come before the next check
}

// diskFull returns an error if so little of the disk is free that uploads are refused.
func (u *upload) diskFull() error {
	if free, err := blobs.FreeShare(u.folder.Dir()); err == nil && free < minFreeShare {
		return fmt.Errorf("%w: %.1f %% of the disk is free, an import needs %.0f %%", errFull, 100*free, 100*minFreeShare)
	}
	return nil
}

// Write implements io.Writer.
func (u *upload) Write(b []byte) (int, error) {
	if u.file.Size()+int64(len(b)) > maxBlob {
		return 0, fmt.Errorf("the blob is larger than %d bytes", maxBlob)
	}
	if int64(len(b)) > u.room {
		if err := u.reserve(uploadCheck); err != nil {
			if err = u.reserve(int64(len(b))); err != nil { // the rest of the quota may be enough
				return 0, err
			}
		}
	}
	u.room -= int64(len(b))
	return u.file.Write(b)
}

// reserve takes room for n more bytes. The reservations stay until the end of the upload,
// when it is known whether the bytes were stored.
func (u *upload) reserve(n int64) error {
	if err := u.diskFull(); err != nil {
		return err
	}
	if u.quota != nil {
		done, err := u.quota.reserve(n)
		if err != nil {
			return err
		}
		u.held = append(u.held, done)
	}
	u.room += n
	return nil
}

// usageAge is how old the measured size of a blob folder may be.
const usageAge = time.Second

// blobQuota bounds the bytes of uploads. It measures the folder now and then, and adds
// what was stored or reserved since.
type blobQuota struct {
	limit int64 // 0: no limit
	usage func() (int64, error)

	mu       sync.Mutex // guards the fields below
	measured time.Time
	used     int64 // at that time
	stored   int64 // since then
	reserved int64
}

// reserve takes room for n bytes. done ends the reservation, and says whether the bytes
// were stored.
func (q *blobQuota) reserve(n int64) (done func(stored bool), err error) {
	if q.limit <= 0 {
		return func(bool) {}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.measured) > usageAge {
		used, err := q.usage()
		if err != nil {
			return nil, err
		}
		q.used, q.stored, q.measured = used, 0, time.Now()
	}
	used := q.used + q.stored + q.reserved
	if n > q.limit-used {
		return nil, fmt.Errorf("%w: no room for blobs of %s: blobs already take %s of at most %s (coppice coordinator "+
			"--max-blob-bytes)",
			errBlobQuota, units.Format(n), units.Format(used), units.Format(q.limit))
	}
	q.reserved += n
	return func(stored bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.reserved -= n
		if stored {
			q.stored += n
		}
	}, nil
}

// fits returns nil if there is room for n bytes now.
func (q *blobQuota) fits(n int64) error {
	done, err := q.reserve(n)
	if err == nil {
		done(false)
	}
	return err
}
