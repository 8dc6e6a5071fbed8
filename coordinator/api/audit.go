package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
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
		Time: time.Now().Unix(), Caller: c.Name, Role: string(c.Role), Token: c.Token, Serial: c.Serial, From: c.From, Via: c.Via,
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
// then by number. The log may have them in another order, since refusals are counted for a while before they are recorded, and
// the clocks of coordinators differ.
func (h *auditHandlers) list(r *http.Request) (any, error) {
	q := protocol.AuditQuery{Limit: defaultRecords}
	if err := protocol.ReadQuery(r.URL.Query(), "a list of audit records", q.Params()); err != nil {
		return nil, bad{err}
	}
	if q.Limit < 0 || q.Limit > state.MaxAudit || q.Since < 0 {
		return nil, fmt.Errorf("%w: want a limit from 0 to %d and a time from 0 on, got %d and %d", errBad, state.MaxAudit, q.Limit, q.Since)
	}
	list := []protocol.AuditRecord{}
	for one := range h.store.State().Audit {
		if one.Time >= q.Since && (q.Caller == "" || one.Caller == q.Caller) && (!q.Refused || one.Refused != "") {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b protocol.AuditRecord) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Number, a.Number))
	})
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
		return nil, fmt.Errorf("%w: this cluster is in the clear, so it checks no certificates and revokes none; start its coordinators with coppice coordinator --tls-dir", errBad)
	}
	if e.Identity != "" {
		if _, err := certs.ParseIdentity(e.Identity); err != nil {
			return nil, bad{err}
		}
	}
	if e.Serial != "" && e.Serial == access.Of(r.Context()).Serial {
		return nil, fmt.Errorf("%w: the caller uses certificate %s; revoke it with another certificate", state.ErrInUse, e.Serial)
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
		return nil, fmt.Errorf("%w: this cluster is in the clear, so everybody may do everything and tokens are of no use; start its coordinators with coppice coordinator --tls-dir", errBad)
	}
	if req.Owner == protocol.NoCaller {
		return nil, fmt.Errorf("%w: owner: no user has the name %q, which stands for an unknown caller", errBad, req.Owner)
	}
	now := time.Now().Unix()
	if req.Expires != 0 && req.Expires <= now {
		return nil, fmt.Errorf("%w: expires: token %.80q would end at once, at %d in Unix seconds", errBad, req.ID, req.Expires)
	}
	_, made, err := commit(r, h.store, protocol.EntryTokenPut, protocol.TokenPutEntry{TokenRequest: req, Time: now})
	if err != nil {
		return nil, err
	}
	return made.(*state.Token).Token, nil
}

// revoke ends a token.
func (h *tokenHandlers) revoke(r *http.Request) (any, error) {
	_, ended, err := commit(r, h.store, protocol.EntryTokenRevoke, protocol.TokenRevokeEntry{ID: r.PathValue("id"), Time: time.Now().Unix()})
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
