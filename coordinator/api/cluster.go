package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// clusterHandlers answer requests about coordinators and workers.
type clusterHandlers struct {
	responder
	id      string
	store   *store.Store
	members *members.Service
	status  Status
	forward *forwarder
}

// ready says whether this coordinator can serve. The text also says what prevents
// training.
func (h *clusterHandlers) ready(w http.ResponseWriter, r *http.Request) {
	err, more := h.status.Ready(), ""
	if h.status.Lacks != nil && r.URL.Query().Get(protocol.ReadyBlobs) != protocol.ReadyBlobsAny {
		if lacks := h.status.Lacks(); lacks != nil && err != nil {
			err = fmt.Errorf("%w; %w", err, lacks)
		} else if lacks != nil {
			err = lacks
		}
	}
	if h.status.Advice != nil && access.Of(r.Context()).Role != rights.Anonymous { // it asks other coordinators
		more = h.status.Advice(r.Context(), err)
	}
	if more != "" {
		more = "; " + more
	}
	if err != nil {
		http.Error(w, err.Error()+more, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready"+more+"\n")
}

const (
	// maxLocalWait bounds the wait for a leader, whatever the client asks for.
	maxLocalWait = 5 * time.Second
	// localPoll is the time between two checks for a leader if the state does not change.
	localPoll = 20 * time.Millisecond
)

// overview answers with what the leader knows, or, if there is none, with what this
// coordinator knows. With protocol.ClusterLocal it answers with the latter, once there is
// a leader or the wait is over. So a worker that looks for a leader does not ask again
// and again.
func (h *clusterHandlers) overview(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("local") != "true" {
		c := h.status.Cluster()
		if c.Leader == "" || c.Leader == h.id || !h.forward.try(w, r, c.Leader) {
			h.answer(w, c.Listed(), nil)
		}
		return
	}
	ms, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("wait_ms"), "0"), 10, 32)
	if err != nil {
		h.answer(w, nil, fmt.Errorf("%w: wait_ms: want a number of milliseconds, got %q", errBad, r.URL.Query().Get("wait_ms")))
		return
	}
	end := time.NewTimer(min(time.Duration(ms)*time.Millisecond, maxLocalWait))
	defer end.Stop()
	poll := time.NewTicker(localPoll)
	defer poll.Stop()
	for waits := true; waits; {
		_, changed := h.store.Watch()
		if h.status.Heard() {
			break
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			waits = false
		case <-changed:
		case <-poll.C:
		}
	}
	local := h.status.Local()
	h.answer(w, local.Listed(), nil)
}

// self describes this coordinator, even if another one leads.
func (h *clusterHandlers) self(*http.Request) (any, error) { return h.members.Self(), nil }

func (h *clusterHandlers) list(r *http.Request) (any, error) {
	return h.members.List(r.Context()), nil
}

// add adds a coordinator, without a vote. It refuses an id or an address that no
// coordinator can have before it looks for the coordinator.
func (h *clusterHandlers) add(r *http.Request) (any, error) {
	var req protocol.AddRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if err := protocol.CheckID(req.ID); err != nil {
		return nil, bad{err}
	}
	if err := protocol.CheckReachable(req.HTTP); err != nil {
		return nil, bad{fmt.Errorf("http %.80q: %w", req.HTTP, err)}
	}
	return recorded(r, h.store, "coordinator "+req.ID, func() (any, error) { return h.members.Add(r.Context(), req) })
}

func (h *clusterHandlers) remove(r *http.Request) (any, error) {
	id := r.PathValue("id")
	return recorded(r, h.store, "coordinator "+id, func() (any, error) { return h.members.Remove(r.Context(), id) })
}

func (h *clusterHandlers) transfer(r *http.Request) (any, error) {
	var req protocol.TransferRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	return recorded(r, h.store, "coordinator "+cmp.Or(req.To, "of the cluster's choice"), func() (any, error) {
		if err := h.members.Transfer(r.Context(), req.To); err != nil {
			return nil, err
		}
		return h.members.List(r.Context()), nil
	})
}

// trust ends the quarantine of a worker.
func (h *clusterHandlers) trust(r *http.Request) (any, error) {
	if _, _, err := commit(r, h.store, protocol.EntryTrust, protocol.TrustEntry{Worker: r.PathValue("worker")}); err != nil {
		return nil, err
	}
	return h.status.Cluster(), nil
}

// backupHandlers answer requests for backups.
type backupHandlers struct {
	responder
	store   *store.Store
	blobs   *replica.Blobs
	cluster func() protocol.Cluster
	backed  func() // if set, called after a complete backup
}

// get streams the state, which has all that was acknowledged before the request, and the
// blobs that it refers to. The state is immutable and its blobs are held, so the cluster
// goes on meanwhile, and even a change of leader does no harm.
func (h *backupHandlers) get(w http.ResponseWriter, r *http.Request) {
	if err := record(r.Context(), h.store, recordOf(r, "all data")); err != nil {
		h.log.Warn("the download of a backup could not be recorded in the audit log", "caller", access.Of(r.Context()).String(), "error", err)
	}
	st := h.store.State()
	refs := st.References()
	defer h.blobs.Folder.Hold(refs)()
	b := &backup{state: st, blobs: h.blobs}
	if err := b.prepare(r.Context(), refs); err != nil {
		h.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := b.write(r.Context(), w, h.cluster().ID); err != nil {
		h.log.Warn("a backup was interrupted", "index", st.Index(), "error", err)
		return
	}
	if h.backed != nil {
		h.backed()
	}
	h.log.Info("a backup was sent", "index", st.Index(), "blobs", len(b.digests), "bytes", b.bytes)
}

// backup is the content of a backup.
type backup struct {
	state   *state.State
	blobs   *replica.Blobs
	digests []string // of the blobs, ascending
	bytes   int64    // of the state and the blobs
	size    int64    // of the state
	sum     string   // SHA-256 of the state
}

// prepare measures the state and the blobs, and fetches the blobs that only another
// coordinator has.
func (b *backup) prepare(ctx context.Context, refs digests.Set) error {
	var n counter
	sum := sha256.New()
	if err := b.state.Encode(io.MultiWriter(&n, sum)); err != nil {
		return err
	}
	b.size, b.sum = int64(n), hex.EncodeToString(sum.Sum(nil))
	b.bytes = b.size
	for d := range refs {
		digest := d.String()
		if !b.blobs.Folder.Has(digest) {
			if err := b.blobs.Fetch(ctx, digest); err != nil {
				return fmt.Errorf("the backup needs blob %s, which cannot be read: %w", digest, err)
			}
		}
		size, err := b.blobs.Folder.Size(digest)
		if err != nil {
			return err
		}
		b.bytes += size
		b.digests = append(b.digests, digest)
	}
	slices.Sort(b.digests)
	return nil
}

// counter counts the bytes that are written to it.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

// write writes the archive. It holds neither the state nor a blob in memory.
func (b *backup) write(ctx context.Context, w io.Writer, cluster string) error {
	a, err := archive.NewWriter(w, archive.Header{
		Cluster: cluster, Index: b.state.Index(), Epoch: b.state.Epoch(), Created: time.Now().Unix(),
		Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Blobs: len(b.digests), Bytes: b.bytes,
	})
	if err != nil {
		return err
	}
	encoded, encode := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		encode.CloseWithError(b.state.Encode(encode))
	}()
	err = a.Record(archive.State, b.sum, b.size, encoded)
	encoded.Close() // ends Encode if Record gave up
	<-done
	if err != nil {
		return err
	}
	for _, digest := range b.digests {
		err := ctx.Err() // the caller may not be valid any more
		var blob *blobs.Blob
		if err == nil {
			blob, err = b.open(ctx, digest)
		}
		if err != nil {
			a.Fail(err)
			return err
		}
		err = a.Record(archive.Blob, digest, blob.Size(), blob)
		blob.Close()
		if err != nil {
			return err
		}
	}
	return a.Close()
}

// open opens a blob after it has read all bytes, whatever was verified earlier. A blob
// that is corrupt here is fetched again.
func (b *backup) open(ctx context.Context, digest string) (*blobs.Blob, error) {
	if err := b.blobs.Folder.Verify(digest); err != nil {
		if fetched := b.blobs.Fetch(ctx, digest); fetched != nil {
			return nil, errors.Join(err, fetched)
		}
	}
	return b.blobs.Folder.OpenBlob(digest)
}
