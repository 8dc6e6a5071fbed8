package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// observer sets the gauges, and tells if the network is too slow.
type observer struct {
	*status
	http    *httpServer
	blobs   *blobs.Folder
	metrics *metrics.Coordinator
	slowAt  time.Time // when the log last said that the network is too slow; only run uses it
}

// run sets the gauges until ctx is done.
func (o *observer) run(ctx context.Context) {
	for range wait.Every(ctx, o.cfg.timeouts.ObserveGauges) {
		o.metrics.ObserveSecurity(o.cfg.exposed, o.cfg.TLS)
		o.observeNetwork()
		o.observeLog()
		o.observeDisk()
	}
}

// observeLog sets the gauges of Raft and of the state.
func (o *observer) observeLog() {
	st, s, m := o.store.Stats(), o.store.State(), o.metrics
	m.SetRaftState(strings.ToLower(st.Role))
	m.RaftTerm.Set(float64(st.Term))
	m.RaftLastContact.Set(max(0, st.LastContact.Seconds()))
	m.RaftApplied.Set(float64(st.AppliedIndex))
	voters := 0
	for _, one := range o.store.Members() {
		if one.Voter {
			voters++
		}
	}
	m.RaftVoters.Set(float64(voters))
	m.Epoch.Set(float64(s.Epoch()))
	waiting := make(map[protocol.WaitReason]int)
	for _, w := range o.jobWaits(s) {
		waiting[w.Reason]++
	}
	for _, r := range protocol.WaitReasons() {
		m.JobsWaiting.WithLabelValues(string(r)).Set(float64(waiting[r]))
	}
	known := 0.0
	if o.heard() {
		known = 1
	}
	m.LeaderKnown.Set(known)
	m.Quarantined.Set(float64(len(s.Quarantined())))
	shards := make(map[string]bool)
	for _, d := range s.Datasets() {
		for _, ref := range d.Manifest.Shards {
			shards[ref.Digest] = true
		}
	}
	m.Shards.Set(float64(len(shards)))
}

// observeDisk sets the gauges of blobs and of the disk.
func (o *observer) observeDisk() {
	m := o.metrics
	if count, bytes, err := o.blobs.Usage(); err == nil {
		m.Blobs.Set(float64(count))
		m.BlobBytes.Set(float64(bytes))
	}
	if free, size, err := blobs.Space(o.cfg.Dir); err == nil {
		m.DiskFree.Set(float64(free))
		m.DiskSize.Set(float64(size))
	}
	if bytes, err := folderBytes(o.store.LogDir()); err == nil {
		m.RaftLogBytes.Set(float64(bytes))
	}
	s := o.copies.Shortage()
	m.MissingBlobs.Set(float64(s.Count))
	m.MissingSeconds.Set(s.Oldest.Seconds())
}

// folderBytes returns the sum of the sizes of the files in a folder, without files that
// are deleted meanwhile.
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

// observeNetwork sets the gauges of round trips, and tells in the log and in health if
// one is too long.
func (o *observer) observeNetwork() {
	m, coordinators := o.metrics, o.store.RoundTrips()
	m.RaftRoundTrip.Reset()
	for id, e := range coordinators {
		m.RaftRoundTrip.WithLabelValues(id).Set(e.Mean.Seconds())
	}
	var workers []protocol.Worker
	if d := o.leading(); d != nil {
		workers = d.Workers()
	}
	needed, text := heartbeatNeeded(roundTrips(coordinators, workers), &o.cfg.timeouts)
	m.Heartbeat.Set(o.cfg.Heartbeat.Seconds())
	m.HeartbeatNeeded.Set(needed.Seconds())
	o.health.slow.Store(&text)
	if now := time.Now(); text != "" && now.Sub(o.slowAt) > tellAgain {
		o.slowAt = now
		o.cfg.Log.Warn("the network is too slow for the timeouts: leaders may change and tasks may be computed twice",
			"reason", text)
	}
}

// roundTrip is the mean round trip to another process.
type roundTrip struct {
	to   string // such as "coordinator b" or "worker w1"
	mean time.Duration
}

// roundTrips lists the round trips, the longest first.
func roundTrips(coordinators map[string]rtt.Estimate, workers []protocol.Worker) []roundTrip {
	var list []roundTrip
	for id, e := range coordinators {
		list = append(list, roundTrip{"coordinator " + id, e.Mean})
	}
	for _, w := range workers {
		list = append(list, roundTrip{"worker " + w.ID, time.Duration(w.RoundTrip * float64(time.Millisecond))})
	}
	slices.SortFunc(list, func(a, b roundTrip) int {
		return cmp.Or(cmp.Compare(b.mean, a.mean), cmp.Compare(a.to, b.to))
	})
	return list
}

// heartbeatNeeded returns the heartbeat that the longest round trip needs, and a
// sentence about it, if it is too long for the timeouts. Otherwise it returns 0 and "".
func heartbeatNeeded(list []roundTrip, t *protocol.Timeouts) (needed time.Duration, text string) {
	if len(list) == 0 || t.Suits(list[0].mean) {
		return 0, ""
	}
	longest := list[0]
	text = fmt.Sprintf("the round trip to %s takes %d ms, more than a third of the election timeout (%v)", longest.to,
		longest.mean.Milliseconds(), t.RaftElection)
	needed = protocol.HeartbeatFor(longest.mean)
	if needed == 0 {
		return longest.mean, text + fmt.Sprintf(": that is too long even for the largest --heartbeat, %v",
			protocol.MaxHeartbeat)
	}
	return needed, text + fmt.Sprintf(": start every coordinator with --heartbeat %v", needed)
}

// tellAgain is how often the log repeats that the network is slow.
const tellAgain = 10 * time.Minute

const (
	// loadEvery is the time between two measurements of the budget.
	loadEvery = 250 * time.Millisecond
	// tellEvery is the least time between two warnings about closed clients.
	tellEvery = 10 * time.Second
)

// load is what others take of the budget.
type load struct {
	nats     bus.Load
	open     int    // HTTP connections
	closed   uint64 // HTTP connections that were closed or refused, since the start
	received int    // bytes of received messages
	dropped  uint64 // received messages that were dropped, since the start
}

// observeLoad sets the gauges of the budget, and warns of clients that were closed, until ctx is done.
func (o *observer) observeLoad(ctx context.Context) {
	var before load
	var unlogged uint64 // clients that were closed or refused since the last warning
	var loggedAt time.Time
	for range wait.Every(ctx, loadEvery) {
		var now load
		if s := o.nats.server; s != nil {
			now.nats = s.Load()
		}
		now.open, now.closed = o.http.count()
		room := o.nats.conn.Room()
		now.received, now.dropped = room.Held(), room.Dropped()
		clients := now.nats.Closed + now.nats.Refused - before.nats.Closed - before.nats.Refused

		m := o.metrics
		m.Connections.WithLabelValues("http").Set(float64(now.open))
		m.Connections.WithLabelValues("nats").Set(float64(now.nats.Clients))
		m.ConnectionsClosed.WithLabelValues("http").Add(float64(now.closed - before.closed))
		m.ConnectionsClosed.WithLabelValues("nats").Add(float64(clients))
		m.Messages.WithLabelValues("received").Set(float64(now.received))
		m.Messages.WithLabelValues("sending").Set(float64(now.nats.Pending))
		m.MessagesDropped.Add(float64(now.dropped - before.dropped))

		if unlogged += clients; unlogged > 0 && time.Since(loggedAt) > tellEvery {
			o.cfg.Log.Warn("NATS clients were closed or refused, because they read too slowly or too many are connected",
				"clients", unlogged)
			unlogged, loggedAt = 0, time.Now()
		}
		before = now
	}
}

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
			log.Info("audit", "number", r.Number, "caller", r.Caller, "role", r.Role, "from", r.From, "via", r.Via, "request",
				r.Request, "about", r.About,
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
	key := protocol.AuditRecord{Caller: c.Name, Role: string(c.Role), Token: c.Token, Serial: c.Serial, From: c.Host(),
		Via: c.Via}
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
