package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// logAudit writes a line for each audit record that the state gets while this coordinator leads.
func logAudit(ctx context.Context, s *store.Store, leading func() bool, log *slog.Logger) {
	var last uint64
	for first := true; ; first = false {
		st, changed := s.Watch()
		from, added := last, []*protocol.AuditRecord(nil)
		for r := range st.Audit {
			if last = max(last, r.Number); r.Number <= from || first {
				break
			}
			added = append(added, r)
		}
		for _, r := range slices.Backward(added) {
			if !leading() { // these are entries that were read from the log, or of another leader
				break
			}
			result := "allowed"
			if r.Refused != "" {
				result = "refused: " + r.Refused
			}
			log.Info("audit", "number", r.Number, "caller", r.Caller, "role", r.Role, "from", r.From, "via", r.Via, "request", r.Request, "about", r.About,
				"result", result, "requests", max(1, r.Count))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// refusalsEvery is the time between two entries with refusals; tests have it shorter.
var refusalsEvery = time.Minute

// maxRefused bounds the callers that the refusals of a minute are counted for. The refusals of
// others are counted together.
const maxRefused = 16

// refusals counts the requests that this coordinator has refused, by caller, until they are in the log.
type refusals struct {
	counted func(reason string) // counts one refusal in the metrics

	mu sync.Mutex
	by map[protocol.AuditRecord]*protocol.AuditRecord // by the fields that tell callers apart
}

// others is the key of the callers beyond maxRefused.
var others = protocol.AuditRecord{Caller: protocol.NoCaller, Role: string(rights.Anonymous), From: "other callers"}

// note counts a refusal.
func (f *refusals) note(c *access.Caller, request string, reason access.Reason, err error) {
	f.counted(string(reason))
	key := protocol.AuditRecord{Caller: c.Name, Role: string(c.Role), Token: c.Token, Serial: c.Serial, From: c.Host(), Via: c.Via}
	key.Clip()
	one := key
	one.Time, one.Request, one.Refused, one.Count = time.Now().Unix(), request, fmt.Sprintf("%s: %v", reason, err), 1
	one.Clip()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(key, one)
}

// add adds a record to the record of its caller. f.mu is held.
func (f *refusals) add(key, one protocol.AuditRecord) {
	if f.by == nil {
		f.by = make(map[protocol.AuditRecord]*protocol.AuditRecord)
	}
	if f.by[key] == nil && len(f.by) >= maxRefused {
		key = others
		one.Caller, one.Role, one.Token, one.Serial, one.From, one.Via = key.Caller, key.Role, "", "", key.From, ""
	}
	if before := f.by[key]; before != nil {
		one.Count += before.Count
		if before.Time > one.Time {
			one.Time, one.Request, one.Refused = before.Time, before.Request, before.Refused
		}
	}
	f.by[key] = &one
}

// run puts the refusals of each minute into the log until ctx is done. What cannot be put there stays
// for the next minute.
func (f *refusals) run(ctx context.Context, put func(context.Context, []protocol.AuditRecord) error, log *slog.Logger) {
	for wait.For(ctx, refusalsEvery) == nil {
		f.mu.Lock()
		taken := f.by
		f.by = nil
		f.mu.Unlock()
		if len(taken) == 0 {
			continue
		}
		var list []protocol.AuditRecord
		for _, one := range taken {
			list = append(list, *one)
		}
		slices.SortFunc(list, func(a, b protocol.AuditRecord) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.From, b.From))
		})
		if err := put(ctx, list); err != nil {
			log.Debug("refusals could not be put into the log yet", "error", err)
			f.mu.Lock()
			for key, one := range taken {
				f.add(key, *one)
			}
			f.mu.Unlock()
		}
	}
}

// putRecords puts audit records into the log, here or at the leader.
func (s *status) putRecords(ctx context.Context, list []protocol.AuditRecord) error {
	e := protocol.RecordEntry{Records: list}
	leader, _ := s.store.Leader()
	if leader == s.cfg.ID {
		_, _, err := s.store.Propose(ctx, protocol.EncodeEntry(protocol.EntryRecord, e))
		return err
	}
	m, ok := s.store.State().Member(leader)
	if !ok {
		return fmt.Errorf("the leader %q is not known", leader)
	}
	return s.cfg.asker.post(ctx, m.HTTP, "/v1/audit", e)
}
