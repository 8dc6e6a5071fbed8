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
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// commit has the log accept an entry that the caller of the request may make, together with a
// record of the request. It returns the index and the result of the entry once it is applied here.
func commit(r *http.Request, s *store.Store, kind protocol.EntryKind, entry any) (index uint64, result any, err error) {
	if !access.Settled(r.Context()) {
		return 0, nil, fmt.Errorf("%w: %s %s was not checked for its owner", access.ErrOwner, r.Method, r.URL.Path)
	}
	e := protocol.RequestEntry{Record: recordOf(r, about(entry)), Inner: protocol.EncodeEntry(kind, entry)}
	return s.Propose(r.Context(), e.Append(nil))
}

// recordOf returns a record of a request. what says what it is about.
func recordOf(r *http.Request, what string) protocol.AuditRecord {
	c := access.Of(r.Context())
	record := protocol.AuditRecord{
		Time: time.Now().Unix(), Caller: c.Name, Role: string(c.Role), Token: c.Token, Serial: c.Serial, From: c.From,
		Via:     c.Via,
		Request: r.Method + " " + r.URL.Path, About: what,
	}
	record.Clip()
	return record
}

// about names what an entry changes. The state knows the name of a job better.
func about(entry any) string {
	switch e := entry.(type) {
	case protocol.SubmitEntry:
		return fmt.Sprintf("a job on dataset %s", e.Dataset)
	case protocol.ExperimentEntry:
		return "experiment " + e.Name
	case protocol.JobEntry:
		return fmt.Sprintf("job %d", e.Job)
	case protocol.JobsDeleteEntry:
		return "jobs " + strings.Trim(fmt.Sprint(e.Jobs), "[]")
	case protocol.DatasetPutEntry:
		return "dataset " + e.Name
	case protocol.DatasetDeleteEntry:
		return "dataset " + e.Name
	case protocol.ShareEntry:
		if e.Dataset != "" {
			return "dataset " + e.Dataset
		}
		return "jobs " + strings.Trim(fmt.Sprint(e.Jobs), "[]")
	case protocol.TrustEntry:
		return "worker " + e.Worker
	case protocol.TokenPutEntry:
		return fmt.Sprintf("token %s of %s (role %s)", e.ID, e.Owner, e.Role)
	case protocol.TokenRevokeEntry:
		return "token " + e.ID
	case protocol.RevokeEntry:
		return "certificate of " + cmp.Or(e.Identity, "serial number "+e.Serial)
	}
	return ""
}

// record puts records into the log.
func record(ctx context.Context, s *store.Store, records ...protocol.AuditRecord) error {
	_, _, err := s.Propose(ctx, protocol.EncodeEntry(protocol.EntryRecord, protocol.RecordEntry{Records: records}))
	return err
}

// recorded makes a change that is no entry. Its record is in the log before, so no change lacks
// one. If the change fails, a second record says why.
func recorded(r *http.Request, s *store.Store, what string, change func() (any, error)) (any, error) {
	one := recordOf(r, what)
	if err := record(r.Context(), s, one); err != nil {
		return nil, err
	}
	v, err := change()
	if err != nil {
		one.Refused = err.Error()
		_ = record(r.Context(), s, one) // an error: the first record stays, and the caller hears the more important one
	}
	return v, err
}

// auditHandlers answer requests about the audit records and revoked certificates.
type auditHandlers struct {
	store  *store.Store
	secure bool // true if connections use TLS
}

// defaultRecords is the number of records of an answer if the request does not say it.
const defaultRecords = 100

// list answers with the newest records that the query asks for, the newest first: sorted by time and
// then by number. The log may have them in another order, since refusals are counted for a while before they are
// recorded, and the clocks of coordinators differ.
func (h *auditHandlers) list(r *http.Request) (any, error) {
	q := protocol.AuditQuery{Limit: defaultRecords}
	if err := protocol.ReadQuery(r.URL.Query(), "a list of audit records", q.Params()); err != nil {
		return nil, bad{err}
	}
	if q.Limit < 0 || q.Limit > state.MaxAudit || q.Since < 0 {
		return nil, fmt.Errorf("%w: want a limit from 0 to %d and a time from 0 on, got %d and %d", errBad, state.MaxAudit,
			q.Limit, q.Since)
	}
	newestFirst := func(a, b protocol.AuditRecord) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Number, a.Number))
	}
	st := h.store.State()
	var before *protocol.AuditRecord // all listed records follow it
	if q.After != 0 {
		for one := range st.Audit {
			if one.Number == q.After {
				before = one
			}
		}
		if before == nil {
			return nil, fmt.Errorf("after: audit record %d: %w; list from the newest record on", q.After, state.ErrNotFound)
		}
	}
	list := []protocol.AuditRecord{}
	for one := range st.Audit {
		if one.Time >= q.Since && (q.Caller == "" || one.Caller == q.Caller) && (!q.Refused || one.Refused != "") &&
			(before == nil || newestFirst(*before, *one) < 0) {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, newestFirst)
	return list[:min(len(list), q.Limit)], nil
}

// add keeps the refusals that another coordinator has counted.
func (h *auditHandlers) add(r *http.Request) (any, error) {
	var e protocol.RecordEntry
	if err := body(r, &e); err != nil {
		return nil, err
	}
	for i := range e.Records {
		if e.Records[i].Count == 0 || e.Records[i].Refused == "" {
			return nil, fmt.Errorf("%w: audit record %d counts no refusals", errBad, i)
		}
	}
	return nil, record(r.Context(), h.store, e.Records...)
}

// revocations lists the revoked certificates.
func (h *auditHandlers) revocations(*http.Request) (any, error) {
	list := []protocol.Revocation{}
	for _, one := range h.store.State().Revocations() {
		list = append(list, *one)
	}
	return list, nil
}

// revoke revokes a certificate. The certificate of the caller is refused.
func (h *auditHandlers) revoke(r *http.Request) (any, error) {
	var e protocol.RevokeEntry
	if err := body(r, &e.Revocation); err != nil {
		return nil, err
	}
	if !h.secure {
		return nil, fmt.Errorf("%w: this cluster uses no TLS, so it checks no certificates and revokes none; start its "+
			"coordinators with coppice coordinator --tls-dir", errBad)
	}
	if e.Identity != "" {
		if _, err := certs.ParseIdentity(e.Identity); err != nil {
			return nil, bad{err}
		}
	}
	if e.Serial != "" && e.Serial == access.Of(r.Context()).Serial {
		return nil, fmt.Errorf("%w: the caller uses certificate %s; revoke it with another certificate",
			state.ErrInUse, e.Serial)
	}
	e.Time = time.Now().Unix()
	_, revoked, err := commit(r, h.store, protocol.EntryRevoke, e)
	return revoked, err
}

// tokenHandlers answer requests about the tokens of users.
type tokenHandlers struct {
	store  *store.Store
	secure bool // true if connections use TLS
}

// list lists all tokens, also expired and revoked ones.
func (h *tokenHandlers) list(*http.Request) (any, error) {
	list := []protocol.Token{}
	for _, t := range h.store.State().Tokens() {
		list = append(list, t.Token)
	}
	return list, nil
}

// create makes a token valid. The client has drawn it, and sends it again if no answer comes.
func (h *tokenHandlers) create(r *http.Request) (any, error) {
	var req protocol.TokenRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if !h.secure {
		return nil, fmt.Errorf("%w: this cluster uses no TLS, so everybody may do everything and tokens are of no use; "+
			"start its coordinators with coppice coordinator --tls-dir", errBad)
	}
	if req.Owner == protocol.NoCaller {
		return nil, fmt.Errorf("%w: owner: no user has the name %q, which stands for an unknown caller", errBad, req.Owner)
	}
	now := time.Now().Unix()
	if req.Expires != 0 && req.Expires <= now {
		return nil, fmt.Errorf("%w: expires: token %.80q would end at once, at %d in Unix seconds", errBad, req.ID,
			req.Expires)
	}
	_, made, err := commit(r, h.store, protocol.EntryTokenPut, protocol.TokenPutEntry{TokenRequest: req, Time: now})
	if err != nil {
		return nil, err
	}
	return made.(*state.Token).Token, nil
}

// revoke ends a token.
func (h *tokenHandlers) revoke(r *http.Request) (any, error) {
	_, ended, err := commit(r, h.store, protocol.EntryTokenRevoke, protocol.TokenRevokeEntry{ID: r.PathValue("id"),
		Time: time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	return ended.(*state.Token).Token, nil
}

// quotaOf returns the most jobs of the caller that may not have ended if the caller submits another
// one; 0: any number.
func quotaOf(r *http.Request, st *state.State) uint32 {
	c := access.Of(r.Context())
	if t := st.Token(c.Token); t != nil {
		return t.Quota
	}
	return c.Quota
}

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
		h.answer(w, nil, fmt.Errorf("%w: wait_ms: want a number of milliseconds, got %q", errBad,
			r.URL.Query().Get("wait_ms")))
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
	if _, _, err := commit(r, h.store, protocol.EntryTrust,
		protocol.TrustEntry{Worker: r.PathValue("worker")}); err != nil {
		return nil, err
	}
	return h.status.Cluster().Listed(), nil
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
		h.log.Warn("the download of a backup could not be recorded in the audit log", "caller", access.Of(r.Context()).
			String(), "error", err)
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
